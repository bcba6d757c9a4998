from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from ._options import RunOptions
from ._torch import TorchDistributor, positive


def _config_text(config: str | os.PathLike | dict[str, Any] | None) -> str | None:
    """As a file of a rank has it."""
    if config is None or config == "":
        return None
    if isinstance(config, dict):
        try:
            return json.dumps(config)
        except (TypeError, ValueError) as error:
            raise TypeError(f"deepspeedConfig cannot be written as JSON ({error}): give it numbers, texts, lists and dictionaries") from error
    try:
        text = Path(config).read_text(encoding="utf-8")
    except OSError as error:
        raise FileNotFoundError(f"deepspeedConfig '{config}' cannot be read ({error.strerror}): give the path of a JSON file, or a dictionary") from error
    try:
        json.loads(text)
    except ValueError as error:
        raise ValueError(f"deepspeedConfig '{config}' is no JSON ({error})") from error
    return text


class DeepspeedTorchDistributor(TorchDistributor):
    """As pyspark.ml.deepspeed.deepspeed_distributor.DeepspeedTorchDistributor.

    numGpus: ranks on each node, of a GPU each with useGpu.
    nnodes: nodes.
    localMode: on this machine alone, with numGpus * nnodes ranks; else in the cluster that TROUPE_ADDRESS names.
    useGpu: False runs DeepSpeed on CPUs, which the original refuses.
    deepspeedConfig: the path of a JSON file, or what it holds; it is sent to the ranks. None: DeepSpeed's defaults.

    Ranks have what DeepSpeed's launcher gives: its variables, and `--deepspeed --deepspeed_config FILE` behind the arguments of a
    file, or in sys.argv of a function.
    """

    _ranks_named = "numGpus * nnodes is {}"

    def __init__(self, numGpus: int = 1, nnodes: int = 1, localMode: bool = True, useGpu: bool = True,
                 deepspeedConfig: str | os.PathLike | dict[str, Any] | None = None, *, options: RunOptions | None = None):
        positive("numGpus", numGpus)
        positive("nnodes", nnodes)
        self._deepspeed = {"config": _config_text(deepspeedConfig)}
        options = options or RunOptions()
        if not localMode and options.per_node is None:
            options = replace(options, per_node=numGpus)
        if not localMode and options.min_ranks is not None and options.min_ranks % options.per_node != 0:
            raise ValueError(f"options.min_ranks is {options.min_ranks}, and has to be a multiple of the {options.per_node} ranks of each node: it "
                             "counts ranks, of which there are numGpus on each node")
        super().__init__(numGpus * nnodes, localMode, useGpu, options=options)
