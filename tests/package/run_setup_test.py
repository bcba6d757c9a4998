#!/usr/bin/env python3
"""Each command of ./run installs the Debian packages that it needs, and no others.

usage: run_setup_test.py TREE

On a machine that lacks them all: PATH has only what the scripts call until then, and an apt-get that writes down what it is
asked for and fails.
"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TOOLS = ("awk", "bash", "cut", "dirname", "env", "grep", "mkdir", "nproc", "pwd", "sed", "sha256sum", "sort", "tr", "uniq", "xargs")
BUILD = {"g++", "cmake", "libboost1.81-dev", "ninja-build"}
TEST = {"chromium", "clang-16", "fish", "gdb", "iproute2", "zsh"}
LINT = {"clang-format-14", "clang-tidy-14"}
# arguments of ./run -> what is asked for, and what is not
WANTED = {
    ("build",): (BUILD, TEST | LINT),
    ("demo",): (BUILD, TEST | LINT),
    ("bench", "core"): (BUILD | {"iproute2"}, (TEST | LINT) - {"iproute2"}),
    ("test",): (BUILD | TEST, LINT),
    ("lint",): (BUILD | LINT, TEST),
    ("setup",): (BUILD | TEST | LINT, set()),
}


def make_machine(folder):
    """-> PATH. dpkg-query knows no package there."""
    programs = folder / "bin"
    programs.mkdir()
    for tool in TOOLS:
        (programs / tool).symlink_to(shutil.which(tool))
    scripts = {"apt-get": f'printf "%s\\n" "$@" >> "{folder}/asked"; exit 1', "dpkg-query": "exit 1", "id": "echo 0"}
    for name, text in scripts.items():
        (programs / name).write_text(f"#!{shutil.which('bash')}\n{text}\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    return str(programs)


def packages_asked_for(tree, arguments):
    """-> a list, since each should be asked for once; and what ./run said."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"PATH": make_machine(Path(folder)), "HOME": folder}
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
    asked, said = packages_asked_for(tree, ("bench", "nosuch"))
    if asked or "no benchmark 'nosuch'; there are: core" not in said:
        yield f"./run bench nosuch installs {asked} before it is refused: {said}"


def main(tree):
    faults = list(faults_of(Path(tree).resolve()))
    for fault in faults:
        print(f"run_setup_test: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
