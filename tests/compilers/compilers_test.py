#!/usr/bin/env python3
"""A compiler takes every public header and, but for nvcc, every example, with the flags that a user's program has.

usage: compilers_test.py g++ | clang++ | nvcc --root TREE --build BUILD --scratch FOLDER

All versions that are there are tried, g++ from 12 and clang++ from 16 on, but for the one that BUILD itself uses, which compiles
the same. With each, examples/cmake_project and a search whose space has strings for keys are built with the libraries of BUILD, and
run. nvcc goes as far as the host's pass. A compiler that is not there is skipped. What a compiler took before is known by its text
(tests/lint/checks/inputs.py), and is not compiled again.
"""
import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lint"))
from checks.clean import CleanResults, user_folder  # noqa: E402
from checks.commands import compile_commands, public_flags  # noqa: E402
from checks.inputs import Inputs  # noqa: E402
from checks.tree import git_tree  # noqa: E402

OLDEST = {"g++": 12, "clang++": 16}


class Failed(Exception):
    """Its text is what the compiler, or the program, said."""


def run(*words, env=None):
    done = subprocess.run([str(word) for word in words], env=env, capture_output=True, text=True)
    if done.returncode != 0 or "warning:" in done.stderr:
        raise Failed(f"{' '.join(str(word) for word in words)}\n{done.stdout[-2000:]}{done.stderr[-8000:]}")
    return done.stdout


def version_of(compiler):
    """The first number of its version; 0 where it tells none."""
    told = subprocess.run([compiler, "-dumpversion"], capture_output=True, text=True).stdout
    found = re.match(r"\d+", told)
    return int(found.group()) if found else 0


def installed(name):
    """The paths of a compiler's versions that are there, from the oldest that is supported on, each once under whatever names."""
    names = {path.name for folder in os.get_exec_path() for path in Path(folder).glob(f"{name}*")}
    paths = [shutil.which(each) for each in sorted(names) if re.fullmatch(re.escape(name) + r"(-\d+)?", each)]
    files = {os.path.realpath(path): path for path in paths if path}
    versions = sorted((version_of(path), path) for path in files.values())
    return [path for version, path in versions if version >= OLDEST[name]]


def find_nvcc():
    toolkit = "/usr/local/cuda/bin/nvcc"
    return shutil.which("nvcc") or (toolkit if os.access(toolkit, os.X_OK) else None)


def flags_with_folders(flags):
    """-I and its like in pairs with their folders, the others alone."""
    words = iter(flags)
    return [(word, next(words)) if word in ("-I", "-isystem", "-idirafter", "-iquote") else (word,) for word in words]


class Programs:
    """What the compilation database of the build says about programs of users."""

    def __init__(self, root, build):
        self.root, self.build = root, build
        self._all_commands = compile_commands(build)
        commands = [command for command in self._all_commands if root / "examples" in command.source.parents]
        self.compiler = commands[0].words[0]
        self.examples = list(dict.fromkeys(command.source for command in commands))
        # What any of them needs, for LibTorch's headers are parsed once for all.
        self.flags = []
        for flag in (each for command in commands for each in flags_with_folders(public_flags(command, root, build))):
            if flag not in self.flags and flag != ("-fpch-preprocess",):
                self.flags.append(flag)
        self.flags = [word for flag in self.flags for word in flag]
        self.flags += ["-I", f"{root}/scheduler/include"]  # installed too, although no example includes them

    def headers(self):
        """As they are included: those of the modules that the user's program may include."""
        folders = {Path(word) for word in self.flags}
        return [Path(*path.parts[2:]).as_posix() for path in git_tree(self.root).public_headers()
                if self.root / path.parts[0] / path.parts[1] in folders]

    def once(self, compiler, flags, is_with_examples, compile_all):
        """Calls `compile_all` unless the compiler is known to take the same text with the same flags."""
        inputs = Inputs(git_tree(self.root), self.build, self._all_commands, __file__, [compiler])
        names = self.headers()
        if is_with_examples:
            names += [source.relative_to(self.root).as_posix() for source in self.examples]
        key = hashlib.sha256("".join(inputs.key(name, [compiler, *flags]) for name in names).encode()).hexdigest()
        taken = CleanResults("compilers", user_folder())
        if not taken.unknown([compiler], lambda _: key):
            print(f"{compiler} is known to take this text")
            return
        compile_all()
        if all(inputs.is_unchanged(name) for name in names):
            taken.remember(key)


def write_headers(programs, scratch):
    """One file that includes all: LibTorch's headers are the dear ones, and are parsed once."""
    file = scratch / "every_header.hpp"
    file.write_text("".join(f"#include <{name}>\n" for name in programs.headers()), encoding="utf-8")
    return file


def compiles_examples(compiler, flags, programs, scratch):
    """clang++ parses the headers once for all, and instantiates once what they use of each other; to g++ they are a part of
    each source."""
    everything = write_headers(programs, scratch)
    flags = [*flags, "-Wall", "-Wextra"]
    if "clang" in Path(compiler).name:
        precompiled = scratch / "every_header.hpp.pch"
        once, include = ["-fpch-instantiate-templates"], ["-include-pch", precompiled]
    else:
        precompiled = scratch / "every_header.hpp.gch"
        once, include = [], ["-include", everything]
    run(compiler, *flags, *once, "-x", "c++-header", everything, "-o", precompiled)
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda source: run(compiler, *flags, *include, "-fsyntax-only", source), programs.examples))
    finally:
        precompiled.unlink()


PROJECT = """cmake_minimum_required(VERSION 3.24)
project(first_sweep LANGUAGES CXX)
find_package(troupe REQUIRED COMPONENTS tune)
add_executable(first_sweep {source})
target_link_libraries(first_sweep PRIVATE troupe::tune)
"""


def prints(compiler, programs, project, folder, program, promised):
    """Another compiler's program is linked with the libraries that this build has made, and runs."""
    shutil.rmtree(folder, ignore_errors=True)
    run("cmake", "-S", project, "-B", folder, "-G", "Ninja", f"-Dtroupe_DIR={programs.build}", f"-DCMAKE_CXX_COMPILER={compiler}")
    run("cmake", "--build", folder)
    printed = run(folder / program, env={**os.environ, "TROUPE_ADDRESS": ""})
    if printed.split() != promised.split():
        raise Failed(f"{program}, as {compiler} compiled it, printed {printed!r} and not {promised!r}")
    shutil.rmtree(folder)


def builds_programs(compiler, programs, scratch):
    prints(compiler, programs, programs.root / "examples/cmake_project", scratch / "project", "my_program", "0 1 4 9 16")
    if not (programs.build / "examples/tune/first_sweep").exists():
        return  # the build has no sweeps
    search = scratch / "search"
    search.mkdir(exist_ok=True)
    source = programs.root / "examples/tune/first_sweep.cpp"
    if '{{"lr", tune::' not in source.read_text(encoding="utf-8"):
        raise Failed(f"{source} has no string for a key: which example has one now?")
    (search / "CMakeLists.txt").write_text(PROJECT.format(source=source), encoding="utf-8")
    prints(compiler, programs, search, scratch / "search_build", "first_sweep", "the best of 20 learning rates is 1.2")


def check_host_compiler(name, programs, scratch):
    own = os.path.realpath(shutil.which(programs.compiler) or programs.compiler)
    compilers = [path for path in installed(name) if os.path.realpath(path) != own]
    if not compilers:
        return f"skipped: there is no {name} of version {OLDEST[name]} or later besides the one that the build uses"
    for compiler in compilers:
        print(f"with {compiler}", flush=True)
        programs.once(compiler, programs.flags, True, lambda: compiles_examples(compiler, programs.flags, programs, scratch))
        builds_programs(compiler, programs, scratch)
    return None


def check_gcc(programs, scratch):
    return check_host_compiler("g++", programs, scratch)


def check_clang(programs, scratch):
    return check_host_compiler("clang++", programs, scratch)


def nvcc_flags(flags):
    """nvcc knows no -idirafter, and hands what it does not know to the host's compiler only if told to."""
    own = {"-idirafter": "-isystem"}
    words = [own.get(flag, flag) for flag in flags]
    return [word for flag in words for word in
            (("-Xcompiler", flag) if flag.startswith(("-f", "-m", "-W", "-pthread")) else (flag,))]


def check_nvcc(programs, scratch):
    compiler = find_nvcc()
    if not compiler:
        return "skipped: there is no nvcc"
    source = scratch / "every_header.cu"
    source.write_text(f'#include "{write_headers(programs, scratch)}"\n__global__ void nothing() {{}}\n', encoding="utf-8")
    # The host's compiler need not make code of it.
    flags = ["-x", "cu", "-c", "-ccbin", shutil.which("g++"), *nvcc_flags(programs.flags), "-Xcompiler", "-fsyntax-only"]
    programs.once(compiler, flags, False, lambda: run(compiler, *flags, source, "-o", scratch / "every_header.o"))
    return None


CHECKS = {"g++": check_gcc, "clang++": check_clang, "nvcc": check_nvcc}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("compiler", choices=sorted(CHECKS))
    for name in ("root", "build", "scratch"):
        parser.add_argument(f"--{name}", type=lambda text: Path(text).resolve(), required=True)
    options = parser.parse_args()
    scratch = options.scratch / options.compiler
    scratch.mkdir(parents=True, exist_ok=True)
    try:
        skipped = CHECKS[options.compiler](Programs(options.root, options.build), scratch)
    except Failed as failure:
        print(f"compilers_test: {options.compiler}: {failure}", file=sys.stderr)
        return 1
    if skipped:
        print(skipped)
    return 0


if __name__ == "__main__":
    sys.exit(main())
