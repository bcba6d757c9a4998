"""The end of a program whose process group outlives it."""

import os
import sys


def leave():
    """Ends this process with status 0 and without Python's own end.

    A device mesh is kept by caches of PyTorch 2.11 beyond destroy_process_group(), and with it gloo's threads. One of
    them that lets go of a tensor while the interpreter ends aborts the process now and then ("terminate called without
    an active exception"), under any launcher.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
