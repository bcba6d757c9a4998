"""Rank 1 raises under PyTorch's record, which writes the traceback for whoever launched it."""

import os
import time

from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    if os.environ["RANK"] == "1":
        raise ValueError("a shape that does not fit")
    time.sleep(200)


main()
