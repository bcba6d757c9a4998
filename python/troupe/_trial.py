"""What a program that `troupe tune` searches the settings of says and is told. Without a sweep its calls do no harm."""

from __future__ import annotations

import json
import os
import sys


def report(metrics: dict | None = None, /, *, checkpoint: str | os.PathLike | None = None, **more) -> None:
    """Reports metrics of a trial: report({"loss": 0.1, "step": 3}), or report(loss=0.1, step=3).

    metrics, more: name -> number, truth value, or what float() takes (a tensor or an array of one element). NaN and
        infinity are worst for the sweep.
    checkpoint: a folder, whole by now, from which the trial can go on; relative to checkpoint_dir().

    It is a line on standard output, flushed at once. Reports of ranks other than 0 count nowhere, and are not printed.
    Raises ValueError where there is no metric, and TypeError for a value that is no number.
    """
    values = {**(metrics or {}), **more}
    if not values:
        raise ValueError('there is nothing to report: give metrics, as in report({"loss": 0.1})')
    line = {}
    for name, value in values.items():
        if name == "checkpoint":
            raise ValueError("a metric cannot be named checkpoint; a checkpoint's folder is given as checkpoint=")
        line[str(name)] = value if isinstance(value, (bool, int)) else _number(name, value)
    if checkpoint is not None:
        line["checkpoint"] = os.fspath(checkpoint)
    if os.environ.get("RANK", "0") != "0":
        return
    sys.stdout.write(f"troupe: {json.dumps(line)}\n")  # one write: others print into the same pipe
    sys.stdout.flush()


def _number(name, value) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"the metric {name!r} is {value!r}, a {type(value).__name__}, and not a number") from error


def is_trial() -> bool:
    """Whether this process runs as a trial of `troupe tune`."""
    return "TROUPE_TRIAL" in os.environ


def trial_config() -> dict:
    """The fields of this trial's configuration; empty without a sweep."""
    return json.loads(os.environ.get("TROUPE_TRIAL_CONFIG", "{}"))


def checkpoint_dir() -> str | None:
    """The folder for checkpoints of this trial, which is there; None without a sweep."""
    return os.environ.get("TROUPE_CHECKPOINT_DIR")


def restore_from() -> str | None:
    """The checkpoint that this trial is to go on from, a folder; None where it begins anew."""
    return os.environ.get("TROUPE_RESTORE_FROM")
