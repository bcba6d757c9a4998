from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field


@dataclass(frozen=True)
class RunOptions:
    """What the originals have no parameter for: `options=` of each runner."""

    address: str | None = None  # the cluster's head, HOST:PORT; None: TROUPE_ADDRESS
    python: str | None = None  # the interpreter on the nodes; None: this one's path
    workdir: str | os.PathLike | None = None  # a folder that is sent to be the working directory of the ranks
    env: dict[str, str] = field(default_factory=dict)  # over the environment of this process
    timeout: float | None = None  # seconds for all of it; then TimeoutError
    log_dir: str | os.PathLike | None = None  # a folder for a file of each rank with what it prints
    max_restarts: int = 0  # how often all ranks are started anew after one has failed
    cpus: float | None = None  # cores of each rank; None: 1, or this machine's shared out

    def interpreter(self) -> str:
        """A relative path is one from this process's folder, or, where a folder is sent, from that one."""
        given = self.python or sys.executable
        return os.path.abspath(given) if os.sep in given and self.workdir is None else given

    def arguments(self) -> list[str]:
        """As `troupe run` has them."""
        given = []
        for name, value in (("--address", self.address), ("--timeout", self.timeout), ("--cpus", self.cpus)):
            if value is not None:
                given += [name, str(value)]
        if self.workdir is not None:
            given += ["--workdir", os.path.abspath(self.workdir)]
        if self.log_dir is not None:
            given += ["--log-dir", os.path.abspath(self.log_dir), "--tee"]
        if self.max_restarts:
            given += ["--max-restarts", str(self.max_restarts)]
        # What ranks print is to appear as they print it, and not as a buffer fills.
        variables = {"PYTHONUNBUFFERED": os.environ.get("PYTHONUNBUFFERED", "1"), **self.env}
        for name, value in variables.items():
            given += ["--env", f"{name}={value}"]
        return given
