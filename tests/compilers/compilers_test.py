#!/usr/bin/env python3
"""A compiler takes every public header and, but for nvcc, every example, with the flags that a user's program has.

usage: compilers_test.py g++ | clang++ | nvcc --root TREE --build BUILD --scratch FOLDER

clang++ is the newest that is there, from version 16 on; it also builds examples/cmake_project with the libraries of BUILD,
and runs it. nvcc goes as far as the host's pass. A compiler that is not there is skipped. The examples are not compiled once
more with the compiler that BUILD itself uses.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lint"))
from checks.commands import compile_commands, public_flags  # noqa: E402
from checks.tree import git_tree  # noqa: E402

OLDEST_CLANG = 16


class Failed(Exception):
    """Its text is what the compiler, or the program, said."""


def run(*words, cwd=None):
    done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, timeout=500)
    if done.returncode != 0 or "warning:" in done.stderr:
        raise Failed(f"{' '.join(str(word) for word in words)}\n{done.stdout[-2000:]}{done.stderr[-8000:]}")
    return done.stdout


def clang_version(path):
    found = re.search(r"clang version (\d+)", subprocess.run([path, "--version"], capture_output=True, text=True).stdout)
    return int(found.group(1)) if found else 0


def newest_clang():
    names = {path.name for folder in os.get_exec_path() for path in Path(folder).glob("clang++*")}
    found = [shutil.which(name) for name in sorted(names) if re.fullmatch(r"clang\+\+(-\d+)?", name)]
    versions = [(clang_version(path), path) for path in found if path]
    return max([each for each in versions if each[0] >= OLDEST_CLANG], default=(0, None))[1]


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
        commands = [command for command in compile_commands(build) if root / "examples" in command.source.parents]
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


def write_headers(programs, scratch):
    """One file that includes all: LibTorch's headers are the dear ones, and are parsed once."""
    file = scratch / "every_header.hpp"
    file.write_text("#pragma once\n" + "".join(f"#include <{name}>\n" for name in programs.headers()), encoding="utf-8")
    return file


def compiles_examples(compiler, flags, programs, scratch):
    everything = write_headers(programs, scratch)
    precompiled = scratch / "every_header.hpp.pch"
    flags = [*flags, "-Wall", "-Wextra"]
    run(compiler, *flags, "-x", "c++-header", everything, "-o", precompiled)
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda source: run(compiler, *flags, "-include-pch", precompiled, "-fsyntax-only", source),
                          programs.examples))
    finally:
        precompiled.unlink()


def compiles_project(compiler, programs, scratch):
    """Another compiler's program is linked with the libraries that this build has made, and runs."""
    folder = scratch / "project"
    shutil.rmtree(folder, ignore_errors=True)
    run("cmake", "-S", programs.root / "examples/cmake_project", "-B", folder, "-G", "Ninja", f"-Dtroupe_DIR={programs.build}",
        f"-DCMAKE_CXX_COMPILER={compiler}")
    run("cmake", "--build", folder)
    printed = run(folder / "my_program")
    if printed.split() != ["0", "1", "4", "9", "16"]:
        raise Failed(f"the program that {compiler} compiled printed {printed!r}")
    shutil.rmtree(folder)


def check_gcc(programs, scratch):
    compiler = shutil.which("g++")
    if not compiler:
        return "skipped: there is no g++"
    everything = write_headers(programs, scratch)
    run(compiler, *programs.flags, "-Wall", "-Wextra", "-fsyntax-only", "-x", "c++", "-include", everything, os.devnull)
    if "clang" in programs.compiler:
        for source in programs.examples:
            run(compiler, *programs.flags, "-Wall", "-Wextra", "-fsyntax-only", source)
    return None


def check_clang(programs, scratch):
    compiler = newest_clang()
    if not compiler:
        return f"skipped: there is no clang++ of version {OLDEST_CLANG} or later"
    print(f"with {compiler}")
    compiles_examples(compiler, programs.flags, programs, scratch)
    compiles_project(compiler, programs, scratch)
    return None


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
    run(compiler, "-x", "cu", "-c", "-ccbin", shutil.which("g++"), *nvcc_flags(programs.flags), "-Xcompiler", "-fsyntax-only",
        source, "-o", scratch / "every_header.o")
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
