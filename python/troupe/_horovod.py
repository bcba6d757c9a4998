from __future__ import annotations

from typing import Any, Callable

from . import _gpus, _launch
from ._options import RunOptions

_VERBOSITIES = ("all", "log_callback_only")


class HorovodRunner:
    """As sparkdl.HorovodRunner. Its ranks find what hvd.init() needs to meet over Gloo; Horovod itself must be installed on the nodes.

    np: above 0, that many ranks in the cluster that TROUPE_ADDRESS names; -1, one for each GPU of this machine, or one where it
      has none; below -1, -np ranks on this machine.
    driver_log_verbosity: "all" shows what ranks in a cluster print; "log_callback_only" what they give to log_to_driver(), and of one
      that fails its last lines. What ranks on this machine print is always shown.
    use_gpu: whether each rank is given a GPU; None: where there are any.
    """

    def __init__(self, np: int, driver_log_verbosity: str = "log_callback_only", *, use_gpu: bool | None = None,
                 options: RunOptions | None = None):
        if np == 0:
            raise ValueError("np is 0: say how many ranks there are to be in the cluster, or -1 for one on each GPU of this machine")
        if driver_log_verbosity not in _VERBOSITIES:
            raise ValueError(f"driver_log_verbosity is '{driver_log_verbosity}', and has to be 'all' or 'log_callback_only'")
        self.num_processor = np
        self.driver_log_verbosity = driver_log_verbosity
        self._use_gpu = use_gpu
        self._options = options or RunOptions()

    def _gpus_there(self) -> int:
        if self._use_gpu is not None and not self._use_gpu:
            return 0
        return _gpus.count_here() if self.num_processor < 0 else _launch.gpus_of_cluster(self._options)

    def run(self, main: Callable, **kwargs: Any) -> Any:
        """Calls main(**kwargs) on each rank. -> what it returned on rank 0."""
        if not callable(main):
            raise TypeError(f"run() takes a function, and not a {type(main).__name__}")
        local = self.num_processor < 0
        there = self._gpus_there()
        ranks = abs(self.num_processor)
        if self.num_processor == -1:
            ranks = max(1, there)
        # On this machine more ranks than GPUs are as many on its cores: np=-4 is how a laptop tries what a cluster is to do.
        gpus = there > 0 and (not local or ranks <= there)
        attachment = _launch.of_function(main, (), kwargs, self._options)
        return _launch.run(attachment, ranks=ranks, local=local, gpus=1 if gpus or self._use_gpu else 0, options=self._options,
                           logs_only=not local and self.driver_log_verbosity == "log_callback_only")
