"""What runs on a rank. Sent along with the function: nodes need Python, and nothing of this package or of cloudpickle."""

from __future__ import annotations

import base64
import json
import os
import pickle
import sys
import tempfile
import traceback
import zipfile

# Lines of these beginnings go to the driver's package, and no further.
FAILURE_MARK = "troupe-rank-failure:"
LOG_MARK = "troupe-log-to-driver:"

# The whole program that a rank is started with: all else is in what was sent.
PROGRAM = (
    "import os, sys; sys.path.insert(0, os.environ['TROUPE_ATTACHED_FILE']); "
    "from troupe._rank import main; main()"
)

_LONGEST_TRACEBACK = 100_000
_LONGEST_MESSAGE = 4000  # as HorovodRunner's


def log_to_driver(message) -> None:
    """Called on a rank: shows the message at the driver, whatever HorovodRunner's `driver_log_verbosity` leaves out. Of a message
    that is longer than 4000 characters, the first 4000 are shown."""
    sys.stdout.flush()
    message = str(message)[:_LONGEST_MESSAGE]
    if "TROUPE_ATTACHED_FILE" not in os.environ:
        print(message, flush=True)
        return
    os.write(1, f"{LOG_MARK}{json.dumps(message)}\n".encode())


def _tell_failure(failure: dict) -> None:
    """To the driver's package, through standard error, before the traceback that people read."""
    sys.stderr.flush()
    try:
        packed = pickle.dumps(failure)
    except Exception:  # its exception cannot be pickled: the traceback can
        packed = pickle.dumps({**failure, "exception": None})
    os.write(2, f"{FAILURE_MARK}{base64.b64encode(packed).decode()}\n".encode())


def _pickled(exception: BaseException):
    """The exception as cloudpickle has it, if it can be carried there and back; None if not."""
    import cloudpickle

    try:
        packed = cloudpickle.dumps(exception.with_traceback(None))
        pickle.loads(packed)
        return packed if len(packed) < 200_000 else None
    except Exception:
        return None


def _fail(exception: BaseException, text: str | None = None) -> None:
    theirs = exception.__traceback__ and exception.__traceback__.tb_next  # without this file's frame
    told = "".join(traceback.format_exception(type(exception), exception, theirs))[-_LONGEST_TRACEBACK:]
    summary = text or "".join(traceback.format_exception_only(type(exception), exception)).strip()
    _tell_failure({"summary": summary, "traceback": told, "exception": _pickled(exception)})
    print(told, end="", file=sys.stderr, flush=True)
    if text:
        print(text, file=sys.stderr, flush=True)
    sys.exit(1)


def _enter(order: dict) -> None:
    """The driver's working directory where this machine has it, and where its modules were found."""
    if order["directory"] is not None:
        for folder in (order["directory"], tempfile.gettempdir()):
            try:
                os.chdir(folder)
                break
            except OSError:
                continue
    if list(sys.version_info[:2]) == order["version"]:
        sys.path += [folder for folder in order["path"] if folder not in sys.path and os.path.isdir(folder)]


def _own_folder() -> str:
    folder = os.path.join(os.path.dirname(os.environ["TROUPE_ATTACHED_FILE"]), f"rank-{os.environ['RANK']}")
    os.makedirs(folder, exist_ok=True)
    return folder


def _deepspeed_arguments(deepspeed: dict | None) -> list:
    """Those that DeepSpeed's own launcher adds. The configuration is a file of this rank's, with what was sent."""
    if deepspeed is None:
        return []
    if deepspeed["config"] is None:
        return ["--deepspeed"]
    file = os.path.join(_own_folder(), "deepspeed.json")
    with open(file, "w", encoding="utf-8") as opened:
        opened.write(deepspeed["config"])
    return ["--deepspeed", "--deepspeed_config", file]


def _run_file(order: dict, content: bytes) -> None:
    """Becomes `python FILE ARGUMENTS`. The file at its own path goes first, for what it imports from beside it."""
    file = order["file"]
    try:
        with open(file, "rb") as opened:
            is_here = opened.read() == content
    except OSError:
        is_here = False
    if not is_here:
        file = os.path.join(_own_folder(), os.path.basename(file))
        with open(file, "wb") as opened:
            opened.write(content)
    os.execv(sys.executable, [sys.executable, file, *order["arguments"], *_deepspeed_arguments(order["deepspeed"])])


def _leave_result(value) -> None:
    import cloudpickle

    try:
        packed = cloudpickle.dumps(value)
    except Exception as error:
        _fail(error, f"what the function returned on rank 0, a {type(value).__name__}, cannot be pickled ({error}): return "
                     "plain values, such as numbers, arrays or a state_dict, or save it to a file and return its path")
    target = os.environ["TROUPE_RESULT_FILE"]
    with open(target + ".partial", "wb") as opened:
        opened.write(packed)
    os.rename(target + ".partial", target)


def _check_version(order: dict) -> None:
    here = list(sys.version_info[:2])
    if order["version"] == here:
        return
    driver, node = (".".join(map(str, version)) for version in (order["version"], here))
    _fail(RuntimeError(f"the driver has Python {driver} and {sys.executable} on this node is Python {node}, which cannot "
                       "read its functions: install the same on both, or name another with RunOptions(python=...)"))


def main() -> None:
    with zipfile.ZipFile(os.environ["TROUPE_ATTACHED_FILE"]) as attached:
        order = json.loads(attached.read("order.json"))
        content = attached.read("content")
    _enter(order)
    if order["file"] is not None:
        return _run_file(order, content)
    _check_version(order)
    sys.argv += _deepspeed_arguments(order["deepspeed"])
    try:
        function, arguments, named = pickle.loads(content)
    except Exception as error:
        return _fail(error, f"the function cannot be read on this node ({type(error).__name__}: {error}): install on it what the "
                            "function uses, import that inside the function, or send its modules with RunOptions(workdir=...)")
    try:
        value = function(*arguments, **named)
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
        value = None
    except BaseException as error:
        return _fail(error)
    if "TROUPE_RESULT_FILE" in os.environ:
        _leave_result(value)
