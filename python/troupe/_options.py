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
    grow_after: float | str | None = None  # seconds of room for more ranks before they are started anew with more, or "never"; None: 30
    cpus: float | None = None  # cores of each rank; None: 1, or this machine's shared out
    per_node: int | None = None  # ranks on each node; None: as they fit
    memory_gb: float | None = None  # of each rank, for its placement
    labels: dict[str, str] = field(default_factory=dict)  # only on nodes that have all of these
    strategy: str | None = None  # pack, spread, strict-pack or strict-spread; None: pack
    min_ranks: int | None = None  # as many ranks as fit, at least these; None: all of them
    grace: float | None = None  # seconds between SIGTERM and SIGKILL, where ranks are ended; None: 1.5

    def interpreter(self) -> str:
        """A relative path is one from this process's folder, or, where a folder is sent, from that one."""
        given = self.python or sys.executable
        return os.path.abspath(given) if os.sep in given and self.workdir is None else given

    def ranks(self, most: int) -> str:
        """As `troupe run -n` has them."""
        if self.grow_after is not None and (self.min_ranks in (None, most) or not self.max_restarts):
            raise ValueError(f"RunOptions(grow_after={self.grow_after!r}): only a run with min_ranks below its {most} ranks, and with "
                             "max_restarts of at least 1, is started anew with more ranks")
        if self.min_ranks is None:
            return str(most)
        if not 1 <= self.min_ranks <= most:
            raise ValueError(f"RunOptions(min_ranks={self.min_ranks}): the run has at most {most} ranks, and at least 1")
        return f"{self.min_ranks}:{most}"

    def arguments(self) -> list[str]:
        """As `troupe run` has them."""
        given = []
        for name, value in (("--address", self.address), ("--timeout", self.timeout), ("--cpus", self.cpus),
                            ("--per-node", self.per_node), ("--memory-gb", self.memory_gb), ("--strategy", self.strategy),
                            ("--grace", self.grace), ("--grow-after", self.grow_after)):
            if value is not None:
                given += [name, str(value)]
        for name, value in self.labels.items():
            given += ["--label", f"{name}={value}"]
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
