from __future__ import annotations

from typing import Any, Callable

from . import _gpus, _launch
from ._options import RunOptions


def _in_strategy(train_fn: Callable, kwargs: dict) -> Any:
    """On a rank, before anything of TensorFlow was used: the strategy is what reads TF_CONFIG."""
    import tensorflow as tf

    with tf.distribute.MultiWorkerMirroredStrategy().scope():
        return train_fn(**kwargs)


class MirroredStrategyRunner:
    """As spark_tensorflow_distributor.MirroredStrategyRunner.

    num_slots: ranks, of a GPU each with use_gpu. Each is a worker of TF_CONFIG in a process of its own.
    local_mode: on this machine alone; else in the cluster that TROUPE_ADDRESS names.
    use_custom_strategy: the function makes its own tf.distribute strategy; else it is called in the scope of a
      MultiWorkerMirroredStrategy.
    """

    def __init__(self, num_slots: int, local_mode: bool = False, use_gpu: bool = True, gpu_resource_name: str = "gpu",
                 use_custom_strategy: bool = False, *, options: RunOptions | None = None):
        if num_slots <= 0:
            raise ValueError(f"num_slots is {num_slots}, and has to be a positive number")
        if gpu_resource_name != "gpu":
            raise ValueError(f"gpu_resource_name is '{gpu_resource_name}': Troupe finds the GPUs of nodes itself and calls them 'gpu', "
                             "so leave it out")
        self._num_slots = num_slots
        self._local_mode = local_mode
        self._use_gpu = use_gpu
        self._use_custom_strategy = use_custom_strategy
        self._options = options or RunOptions()

    def run(self, train_fn: Callable, **kwargs: Any) -> Any:
        """Calls train_fn(**kwargs) on each rank. -> what it returned on rank 0."""
        if not callable(train_fn):
            raise TypeError(f"run() takes a function, and not a {type(train_fn).__name__}")
        if self._local_mode and self._use_gpu and (there := _gpus.count_here()) < self._num_slots:
            raise ValueError(f"num_slots is {self._num_slots} and this machine has {there} GPUs that CUDA_VISIBLE_DEVICES shows: say "
                             "use_gpu=False, fewer slots, or local_mode=False to use those of a cluster")
        if self._use_custom_strategy:
            attachment = _launch.of_function(train_fn, (), kwargs, self._options)
        else:
            attachment = _launch.of_function(_in_strategy, (train_fn, kwargs), {}, self._options)
        # TensorFlow takes all GPUs that it sees, so each worker is to see its own alone.
        return _launch.run(attachment, ranks=self._num_slots, local=self._local_mode, gpus=1 if self._use_gpu else 0,
                           isolate_gpus=self._use_gpu, options=self._options)
