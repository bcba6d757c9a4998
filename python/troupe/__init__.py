"""Python functions and programs as gangs of ranks, over the command `troupe run`."""

from ._deepspeed import DeepspeedTorchDistributor
from ._errors import RankFailed, TroupeError
from ._horovod import HorovodRunner
from ._options import RunOptions
from ._rank import log_to_driver
from ._tensorflow import MirroredStrategyRunner
from ._torch import TorchDistributor
from ._trial import checkpoint_dir, is_trial, report, restore_from, trial_config

__version__ = "0.1.0"

__all__ = ["DeepspeedTorchDistributor", "HorovodRunner", "MirroredStrategyRunner", "RankFailed", "RunOptions", "TorchDistributor",
           "TroupeError", "checkpoint_dir", "is_trial", "log_to_driver", "report", "restore_from", "trial_config"]
