"""What the compilation database of a build folder says: which flags a source is compiled with."""

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

_INCLUDED = re.compile(r'^#include "([^"]+)"$', re.MULTILINE)
_TAKES_FOLDER = ("-I", "-isystem", "-idirafter", "-iquote")


@dataclass(frozen=True)
class Command:
    source: Path  # absolute
    words: tuple  # the compiler and its arguments


def _sources_of(file):
    """The file itself, or those that it compiles together (cmake/TroupeBatches.cmake)."""
    if "batches" not in file.parts:
        return [file]
    return [(file.parent / name).resolve() for name in _INCLUDED.findall(file.read_text(encoding="utf-8"))]


def compile_commands(build):
    """A Command for each source of the build, also where several are compiled at once."""
    commands = []
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        words = shlex.split(entry["command"])
        if "ccache" in Path(words[0]).name:
            words = words[1:]
        for source in _sources_of(Path(entry["file"])):
            commands.append(Command(source, tuple(words)))
    return commands


def folders_within(commands, build):
    """The folders of generated headers: those beneath the build folder that a command searches for headers."""
    words = {word.removeprefix("-I") for command in commands for word in command.words}
    folders = {Path(word).resolve() for word in words if word.startswith("/") and Path(word).is_dir()}
    return sorted(folder for folder in folders if build.resolve() in folder.parents)


def public_flags(command, root, build):
    """The flags of a command without its files, precompiled headers and private include folders."""
    flags, arguments = [], iter(command.words[1:])
    for argument in arguments:
        if argument in ("-o", "-MF", "-MT", "-c", "-include"):
            next(arguments, None)
        elif argument.startswith(_TAKES_FOLDER):
            name = next(name for name in _TAKES_FOLDER if argument.startswith(name))
            folder = argument[len(name):] or next(arguments)
            if not _is_private(Path(folder), root, build):
                flags += [name, folder]
        elif argument.startswith(("-std", "-f", "-D", "-m", "-W", "-pthread")) and argument != "-Winvalid-pch":
            flags.append(argument)
    return flags


def _is_private(folder, root, build):
    return build in folder.parents or (root in folder.parents and folder.name == "src")
