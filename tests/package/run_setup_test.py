#!/usr/bin/env python3
"""Each command of ./run installs the Debian packages that it needs, and no others.

usage: run_setup_test.py TREE

On a machine that lacks them all: PATH has only what the scripts call until then, and an apt-get that writes down what it is
asked for and fails. On another system than Debian 12 it installs nothing and names them.
"""
import contextlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS = ("awk", "bash", "cut", "dirname", "env", "grep", "mkdir", "nproc", "pwd", "rm", "sed", "sha256sum", "sort", "tr", "uniq", "xargs")
BUILD = {"g++", "cmake", "libboost1.81-dev", "ninja-build"}
TEST = {"chromium", "clang-16", "fish", "gdb", "groff-base", "iproute2", "zsh"}
LINT = {"clang-format-14", "clang-tidy-14"}
# arguments of ./run -> what is asked for, and what is not
WANTED = {
    ("build",): (BUILD, TEST | LINT),
    ("demo",): (BUILD, TEST | LINT),
    ("bench", "core"): (BUILD | {"iproute2"}, (TEST | LINT) - {"iproute2"}),
    ("test",): (BUILD, TEST | LINT),  # the others follow, see faults_of_tests
    ("lint",): (BUILD | LINT, TEST),
    ("setup",): (BUILD | TEST | LINT, set()),
}


def make_machine(folder, release, installed):
    """-> PATH. dpkg-query knows the packages `installed` alone; `release` is what its /etc/os-release says."""
    programs = folder / "bin"
    programs.mkdir()
    for tool in TOOLS:
        (programs / tool).symlink_to(shutil.which(tool))
    scripts = {"apt-get": f'printf "%s\\n" "$@" >> "{folder}/asked"; exit 1', "id": "echo 0",
               "dpkg-query": f"printf ' installed:%s ' {' '.join(installed)}; exit 1",
               "cat": f'[ "$1" != /etc/os-release ] || {{ echo VERSION_CODENAME={release}; exit; }}; exec {shutil.which("cat")} "$@"'}
    for name, text in scripts.items():
        (programs / name).write_text(f"#!{shutil.which('bash')}\n{text}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    return str(programs)


def packages_asked_for(tree, arguments, release="bookworm", installed=(), tools=(), **variables):
    """-> a list, since each should be asked for once; and what ./run said."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": make_machine(Path(folder), release, installed), "HOME": folder, **variables}
        for tool in tools:
            Path(folder, "bin", tool).symlink_to(shutil.which("true"))
        done = subprocess.run([shutil.which("bash"), str(tree / "run"), *arguments], env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=300)
        asked = Path(folder, "asked")
        words = asked.read_text(encoding="utf-8").split() if asked.exists() else []
    installed = words[words.index("install") + 1:] if "install" in words else []
    return [word for word in installed if not word.startswith("-")], f"{done.returncode}: {done.stdout}{done.stderr}"


def faults_of(tree):
    for arguments, (wanted, unwanted) in WANTED.items():
        asked, said = packages_asked_for(tree, arguments)
        command = f"./run {' '.join(arguments)}"
        if missing := wanted - set(asked):
            yield f"{command} does not install {sorted(missing)}; it said {said}"
        if more := unwanted & set(asked):
            yield f"{command} installs {sorted(more)}, which it does not need"
        if len(asked) != len(set(asked)):
            yield f"{command} asks for a package twice: {sorted(asked)}"
    yield from faults_of_tests(tree)
    yield from faults_elsewhere(tree)
    yield from faults_of_wheels(tree)
    asked, said = packages_asked_for(tree, ("bench", "nosuch"))
    if asked or "no benchmark 'nosuch'; there are: core" not in said:
        yield f"./run bench nosuch installs {asked} before it is refused: {said}"


def faults_elsewhere(tree):
    asked, said = packages_asked_for(tree, ("build",), release="noble")
    named = said.partition("unless it is here under another name: ")[2].partition("\n")[0].split()
    if asked or not BUILD <= set(named) or (TEST | LINT) & set(named) or "g++ is missing; Troupe needs g++ 12" not in said:
        yield f"./run build on another system installs {asked}, or does not name what it needs: {said}"


@contextlib.contextmanager
def own_libraries():
    """-> a folder that has what the wheels would bring"""
    with tempfile.TemporaryDirectory() as libraries:
        for name in ("lib/libtorch_cpu.so", "include/cuda_runtime_api.h", "include/nccl.h"):
            Path(libraries, name).parent.mkdir(exist_ok=True)
            Path(libraries, name).touch()
        yield libraries


def faults_of_tests(tree):
    """On a machine that can build, what only running the tests needs is asked for; the build is one that does nothing."""
    lines = (line.split() for line in Path(tree, "cmake/setup/debian_packages.txt").read_text(encoding="utf-8").splitlines())
    installed = [words[1] for words in lines if words and words[0] == "build"]
    with tempfile.TemporaryDirectory() as copy, own_libraries() as libraries:
        shutil.copy(tree / "run", copy)
        shutil.copytree(tree / "cmake/setup", Path(copy, "cmake/setup"))
        asked, said = packages_asked_for(Path(copy), ("test",), installed=installed, tools=("g++", "cmake", "git", "python3"),
                                         CMAKE_PREFIX_PATH=libraries)
    if not TEST <= set(asked) or (BUILD | LINT) & set(asked):
        yield f"./run test asks for {sorted(asked)} where building needs nothing more; it said {said}"
    if not said.startswith("1: ") or "could not install" not in said:
        yield f"./run test does not say that a package of the tests could not be installed; it said {said}"


def faults_of_wheels(tree):
    """Where the user has the libraries, that set-up has nothing to do; and it never needs what building does."""
    with own_libraries() as libraries:
        asked, said = packages_asked_for(tree, ("setup", "wheels"), CMAKE_PREFIX_PATH=libraries)
    if asked or "set-up is complete" not in said:
        yield f"./run setup wheels installs {asked}, where nothing is missing: {said}"
    asked, said = packages_asked_for(tree, ("setup", "wheel"))
    if asked or "setup: no such part: wheel; there is: wheels" not in said:
        yield f"./run setup wheel installs {asked} before it is refused: {said}"


def main(tree):
    faults = list(faults_of(Path(tree).resolve()))
    for fault in faults:
        print(f"run_setup_test: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
