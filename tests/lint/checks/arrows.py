"""Arrows between modules point down only, and public headers promise nothing that is private.

An include names its module by its first folder: <troupe/train/...> is train's, <troupe/scheduler/...> the scheduler's,
other <troupe/...> the runtime's. Private headers ("folder/file.hpp") are looked up in the modules' src folders.
"""

from pathlib import Path

from .tree import Problem, includes

# What a module may include of the others. Tests and programs stand above all of them.
BELOW = {
    "scheduler": set(),
    "runtime": {"scheduler"},
    "train": {"runtime", "scheduler"},
    "tune": {"runtime", "scheduler"},
    "launch": {"runtime", "scheduler", "tune"},
}

# Libraries that a user of the public headers does not meet.
PRIVATE_LIBRARIES = ("boost/asio", "asio", "boost/beast", "nlohmann", "spdlog", "fmt", "capnp", "kj", "sqlite3.h",
                     "openssl", "curl", "CLI", "toml++")
# Only train may know them.
NUMERIC_LIBRARIES = ("torch", "ATen", "c10", "nccl.h", "cuda", "cuda_runtime.h", "cuda_runtime_api.h")


def _is_of(library, included):
    return included == library or included.startswith(library + "/")


def public_module(included):
    parts = Path(included).parts
    if parts[:1] != ("troupe",):
        return None
    if len(parts) > 2 and parts[1] in ("scheduler", "train", "tune"):
        return parts[1]
    if parts[1:] and Path(parts[1]).stem in ("scheduler", "train", "tune"):
        return Path(parts[1]).stem  # <troupe/train.hpp>
    return "runtime"


def private_modules(tree):
    """What each private header is included as -> the modules that have it."""
    found = {}
    for path in tree.cpp_files():
        if len(path.parts) > 2 and path.parts[1] == "src" and path.suffix == ".hpp":
            found.setdefault(Path(*path.parts[2:]).as_posix(), set()).add(path.parts[0])
    return found


def check(tree):
    problems = []
    private = private_modules(tree)
    for path in tree.cpp_files():
        module = path.parts[0]
        if module not in BELOW:
            continue
        public = path.parts[1:2] == ("include",)
        for line, kind, included in includes(tree.text(path)):
            message = _fault(module, public, kind, included, private)
            if message:
                problems.append(Problem(path, line, message))
    return problems


def _fault(module, public, kind, included, private):
    target = public_module(included)
    if target and target != module and target not in BELOW[module]:
        return f"{module} may not include {target}'s <{included}>"
    if not target:
        owners = private.get(included, set())
        if owners and public:
            return f"a public header includes the private \"{included}\""
        if owners and module not in owners and not owners & BELOW[module]:
            return f"{module} may not include \"{included}\" of {', '.join(sorted(owners))}"
        if kind == '"' and public:
            return f"a public header includes \"{included}\"; public headers are named <troupe/...>"
        if public and any(_is_of(library, included) for library in PRIVATE_LIBRARIES):
            return f"a public header includes <{included}>, which users of Troupe do not meet"
        if module != "train" and any(_is_of(library, included) for library in NUMERIC_LIBRARIES):
            return f"{module} includes <{included}>; only train knows LibTorch and CUDA"
    return None
