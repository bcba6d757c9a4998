from __future__ import annotations

import os
import warnings
from typing import Any, Callable

from . import _gpus, _launch
from ._errors import TroupeError
from ._options import RunOptions


def positive(name: str, value: int) -> None:
    """Throws where it is no number of ranks or nodes."""
    if not hasattr(value, "__index__") or value <= 0:
        raise ValueError(f"{name} is {value!r}, and has to be a positive integer")


class TorchDistributor:
    """As pyspark.ml.torch.distributor.TorchDistributor.

    num_processes: ranks, of a GPU each with use_gpu.
    local_mode: on this machine alone; else in the cluster that TROUPE_ADDRESS names.
    use_gpu: each rank is given a GPU; more ranks than this machine has GPUs become as many as it has, with a warning.
    """

    _deepspeed = None  # what ranks are given of DeepSpeed
    _ranks_named = "num_processes is {}"  # for errors

    def __init__(self, num_processes: int = 1, local_mode: bool = True, use_gpu: bool = True, *, options: RunOptions | None = None):
        positive("num_processes", num_processes)
        self.num_processes = num_processes
        self.local_mode = local_mode
        self.use_gpu = use_gpu
        self._options = options or RunOptions()
        if use_gpu and local_mode:
            self._fit_to_gpus()

    def _fit_to_gpus(self) -> None:
        there = _gpus.count_here()
        if there == 0:
            raise TroupeError("use_gpu is True, which is its default, and this machine has no GPU that CUDA_VISIBLE_DEVICES shows: say "
                              "use_gpu=False, or local_mode=False to use those of a cluster")
        if self.num_processes > there:
            warnings.warn(f"{self._ranks_named.format(self.num_processes)} and this machine has {there} GPUs: there are {there} ranks now",
                          stacklevel=3 if self._deepspeed is None else 4)
            self.num_processes = there

    def run(self, train_object: Callable | str, *args: Any, **kwargs: Any) -> Any:
        """Calls the function with these arguments on each rank, or runs the Python file with them as its command line.
        -> what the function returned on rank 0; None of a file."""
        if isinstance(train_object, (str, os.PathLike)):
            if kwargs:
                raise ValueError(f"a file has no keyword arguments ({', '.join(kwargs)}): give its command line, such as '--lr', '0.1'")
            attachment = _launch.of_file(train_object, args, self._options, self._deepspeed)
        elif callable(train_object):
            attachment = _launch.of_function(train_object, args, kwargs, self._options, self._deepspeed)
        else:
            raise TypeError(f"run() takes a function or the path of a Python file, and not a {type(train_object).__name__}")
        return _launch.run(attachment, ranks=self.num_processes, local=self.local_mode, gpus=1 if self.use_gpu else 0,
                           options=self._options)
