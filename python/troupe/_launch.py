"""One call of `troupe run`: what is sent, what comes back, and what went wrong."""

from __future__ import annotations

import base64
import contextlib
import ctypes
import io
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import threading
import zipfile
from collections import deque
from pathlib import Path

from . import _binary, _rank, _scratch
from ._errors import RankFailed, TroupeError
from ._options import RunOptions

TIMED_OUT, TROUPE_FAILED = 124, 125

_OF_RANK = re.compile(r"\[(\d+)\] (.*)", re.DOTALL)
_FORMED_ANEW = "troupe run: the gang is formed anew"
_LOOK_FOR_SIGNALS = 0.5  # seconds
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


# --- What is sent


def _sources(module) -> list[tuple[str, Path]]:
    """The files of a package of Python alone, by their names in an archive."""
    folder = Path(module.__file__).parent
    return [(f"{folder.name}/{file.name}", file) for file in sorted(folder.glob("*.py"))]


def _attachment(content: bytes, *, file=None, arguments=(), deepspeed: dict | None = None, options: RunOptions) -> dict:
    order = {
        "deepspeed": deepspeed,
        "file": file,
        "arguments": list(arguments),
        "version": list(sys.version_info[:2]),
        "directory": os.getcwd() if options.workdir is None else None,
        "path": [os.path.abspath(folder) for folder in sys.path],
    }
    return {"order": order, "content": content}


def _write_attachment(target: Path, attachment: dict) -> None:
    import cloudpickle

    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("order.json", json.dumps(attachment["order"]))
        archive.writestr("content", attachment["content"])
        for module in (cloudpickle, sys.modules[__package__]):
            for name, source in _sources(module):
                archive.writestr(name, source.read_bytes())


def of_function(function, arguments: tuple, named: dict, options: RunOptions, deepspeed: dict | None = None) -> dict:
    import cloudpickle

    try:
        content = cloudpickle.dumps((function, arguments, named))
    except Exception as error:
        raise TypeError(f"{getattr(function, '__name__', function)!r} and its arguments cannot be pickled ({error}): make what "
                        "cannot travel, such as locks, files and connections, inside the function") from error
    return _attachment(content, deepspeed=deepspeed, options=options)


def of_file(file, arguments: tuple, options: RunOptions, deepspeed: dict | None = None) -> dict:
    path = os.path.abspath(file)
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise FileNotFoundError(f"the program '{file}' cannot be read ({error.strerror}): give the path of a Python file") from error
    return _attachment(content, file=path, arguments=map(str, arguments), deepspeed=deepspeed, options=options)


# --- What appears


class _Output:
    """What `troupe run` prints, handed on line by line; marked lines are for this package."""

    def __init__(self, logs_only: bool):
        self._logs_only = logs_only  # of ranks, what log_to_driver() said alone
        self._said = deque(maxlen=50)  # by `troupe run` itself
        self.failures = {}  # rank -> what _rank told
        self.why_unwritable = ""  # of what ranks print; empty: it was written

    def said(self) -> str:
        lines = [line for line in self._said if _rank.FAILURE_MARK not in line]
        return "\n".join(lines).strip()

    def take(self, line: str, to_error: bool) -> str:
        """-> what to print of it."""
        found = _OF_RANK.match(line)
        if not found:
            if to_error:
                self._said.append(line.rstrip("\n").removeprefix("troupe run: "))
            if line.startswith(_FORMED_ANEW):
                self.failures.clear()
            return "" if _rank.FAILURE_MARK in line else line
        rank, text = int(found[1]), found[2]
        prefix = line[: found.start(2)]
        before, mark, packed = text.partition(_rank.FAILURE_MARK)
        if mark:
            with contextlib.suppress(Exception):  # torn by what else the rank wrote: its last lines are there
                self.failures[rank] = pickle.loads(base64.b64decode(packed))
            text = before + "\n" if before else ""
        before, mark, packed = text.partition(_rank.LOG_MARK)
        if mark:
            with contextlib.suppress(ValueError):
                shown = "" if self._logs_only or not before else prefix + before + "\n"
                return shown + prefix + json.loads(packed) + "\n"
        return "" if self._logs_only or not text else prefix + text

    def pump(self, pipe, to_error: bool, process) -> None:
        broken = False
        for line in pipe:
            shown = self.take(line, to_error)
            if not shown or broken:
                continue
            target = sys.stderr if to_error else sys.stdout
            try:
                try:
                    target.write(shown)
                except UnicodeEncodeError:  # of a terminal that has not all characters
                    code = target.encoding or "ascii"
                    target.write(shown.encode(code, "replace").decode(code))
                target.flush()
            except Exception as error:  # as with any pipe that nobody reads, that ends the program; the rest is read and lost
                broken = True
                self.why_unwritable = self.why_unwritable or f"standard {'error' if to_error else 'output'}: {error}"
                process.terminate()


# --- The command


def _die_with_driver() -> None:
    """In the child: a driver that is killed takes its ranks along."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait(process) -> None:
    """To its end. Ctrl-C ends all ranks; a second one at once."""
    interrupted = None
    ended = threading.Event()

    def wait():
        process.wait()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    while True:
        try:
            # The kernel may give a signal to any thread. Python handles it on this one, which is not woken by that.
            if ended.wait(_LOOK_FOR_SIGNALS):
                break
        except KeyboardInterrupt as error:
            interrupted = error
            process.send_signal(signal.SIGINT)
    if interrupted:
        raise interrupted


def _execute(command: list[str], environment: dict, output: _Output) -> int:
    # In a session of its own, so that Ctrl-C comes from here alone: a second one would end the ranks without grace.
    process = subprocess.Popen(command, env=environment, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True, preexec_fn=_die_with_driver)
    # Lines end with "\n" alone: the "\r" of a progress bar stands within one.
    pipes = [io.TextIOWrapper(pipe, encoding="utf-8", errors="replace", newline="\n") for pipe in (process.stdout, process.stderr)]
    pumps = [threading.Thread(target=output.pump, args=(pipe, to_error, process), daemon=True)
             for pipe, to_error in zip(pipes, (False, True))]
    for pump in pumps:
        pump.start()
    try:
        _wait(process)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
        for pump in pumps:
            pump.join(10)
        for pipe in pipes:
            pipe.close()
    return process.returncode


def _environment(local: bool, options: RunOptions) -> dict:
    environment = dict(os.environ)
    if environment.get("TROUPE_TOKEN_FILE"):  # `troupe run` works in another folder
        environment["TROUPE_TOKEN_FILE"] = os.path.abspath(environment["TROUPE_TOKEN_FILE"])
    if local:
        if options.address is not None:
            raise ValueError("RunOptions(address=...) names a cluster and the run is one on this machine: leave one of them out")
        environment.pop("TROUPE_ADDRESS", None)
    elif options.address is None and not environment.get("TROUPE_ADDRESS"):
        raise TroupeError("the run is to be in a cluster, and none is named: set TROUPE_ADDRESS to the HOST:PORT that `troupe head` "
                          "prints, pass options=RunOptions(address=...), or run on this machine alone (local_mode=True; "
                          "HorovodRunner: a negative np)")
    return environment


def gpus_of_cluster(options: RunOptions) -> int:
    """GPUs of all nodes that the cluster has now."""
    command = [_binary.find(), "status", "--json"]
    if options.address is not None:
        command += ["--address", options.address]
    done = subprocess.run(command, env=_environment(False, options), capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise TroupeError(f"the cluster does not say what GPUs it has: {done.stderr.strip()}")
    return int(sum(node["total"].get("gpu", 0) for node in json.loads(done.stdout)["nodes"]))


def run(attachment: dict, *, ranks, local: bool, gpus: int = 0, isolate_gpus: bool = False, logs_only: bool = False,
        options: RunOptions | None = None):
    """Runs it as a gang. -> what the function returned on rank 0; None of a file."""
    options = options or RunOptions()
    is_function = attachment["order"]["file"] is None
    environment = _environment(local, options)
    with _scratch.folder() as folder:
        attached, result, summary = (Path(folder, name) for name in ("attached", "result", "summary"))
        _write_attachment(attached, attachment)
        command = [_binary.find(), "run", "-n", options.ranks(ranks), "--gpus", str(gpus), "--attach", str(attached), "--summary", str(summary)]
        command += ["--isolate-gpus"] if isolate_gpus else []
        command += ["--result", str(result)] if is_function else []
        command += [*options.arguments(), "--", options.interpreter(), "-c", _rank.PROGRAM]
        output = _Output(logs_only)
        status = _execute(command, environment, output)
        _check(status, summary, output, gpus, options)
        return _value(result) if is_function else None


# --- How it ended


def _value(result: Path):
    try:
        packed = result.read_bytes()
    except FileNotFoundError:
        raise TroupeError("rank 0 ended well without returning from the function, as os._exit does: return from it") from None
    try:
        return pickle.loads(packed)
    except Exception as error:
        raise TroupeError(f"what the function returned on rank 0 cannot be read here ({type(error).__name__}: {error}): install here "
                          "what it is made of, or return plain values; tensors of a GPU are to be moved to the CPU") from error


def _check(status: int, summary: Path, output: _Output, gpus: int, options: RunOptions) -> None:
    if status == 0:
        return
    unheard = _unheard(output.why_unwritable) if output.why_unwritable else None
    try:
        told = json.loads(summary.read_text())
    except (OSError, ValueError):
        raise unheard or _not_started(status, output.said(), gpus)
    if told["stopped_by"] == "--timeout":
        raise TimeoutError(f"the run took longer than {options.timeout:g} s (RunOptions(timeout=...)), and all its ranks were ended")
    if told["stopped_by"]:
        raise unheard or TroupeError(f"{told['stopped_by']} ended all ranks after {told['seconds']:.1f} s")
    if "rank" in told.get("failure", {}):
        raise _rank_failed(told, output)
    if "failure" in told:
        raise _not_started(status, output.said() or told["failure"]["why"], gpus)
    raise TroupeError(f"`troupe run` ended with exit status {status}: {output.said() or 'it did not say why'}")


def _unheard(why: str) -> TroupeError:
    """This package has ended the ranks with SIGTERM, which nobody else sent."""
    return TroupeError(f"what the run prints cannot be written ({why}), and all ranks were ended: a rank is not to train unheard. Make "
                       "room, keep the reader of this program's output, or send the output elsewhere")


# What `troupe run` says of the files that it is to write once the ranks have ended.
_OF_RESULT = ("(--result)", "(--summary)")


def _not_started(status: int, why: str, gpus: int) -> TroupeError:
    """No rank ran: there is no summary, or one without a rank that failed. Or what they left could not be brought here."""
    if any(option in why for option in _OF_RESULT):
        return TroupeError(f"what the function returned on rank 0 cannot be brought here: {why}. The files of a run are in "
                           f"{_scratch.parent()}: TMPDIR names another folder")
    advice = ". To run without GPUs say use_gpu=False" if gpus and "gpu" in why.lower() else ""
    return TroupeError(f"the run could not be started (exit status {status}): {why or 'it did not say why'}{advice}")


def _rank_failed(told: dict, output: _Output) -> RankFailed:
    failure = told["failure"]
    rank = failure["rank"]
    last_lines = [line for line in failure["last_lines"] if _rank.FAILURE_MARK not in line]
    own = output.failures.get(rank, {})
    text = f"rank {rank} of {told['ranks']} on node {failure['node']} "
    if own:
        text += f"failed: {own['summary']}\nThe traceback of rank {rank}:\n{own['traceback'].rstrip()}"
    else:
        text += failure["why"]
        if last_lines:
            text += "; its last lines:\n" + "\n".join(f"    {line}" for line in last_lines)
    error = RankFailed(text, rank=rank, node=failure["node"], exit_code=failure["exit_code"], signal=failure["signal"],
                       traceback=own.get("traceback"), last_lines=last_lines)
    with contextlib.suppress(Exception):  # of a class that this process has not: the text has all of it
        error.__cause__ = pickle.loads(own["exception"]) if own.get("exception") else None
    return error
