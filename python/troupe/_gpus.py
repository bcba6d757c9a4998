from __future__ import annotations

import ctypes
import os


def _named() -> list[str] | None:
    """What CUDA_VISIBLE_DEVICES names, up to the first that is no device; None where it is not set."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return None
    names = []
    for name in visible.split(","):
        if not name.strip() or name.strip() == "-1":
            break
        names.append(name.strip())
    return names


def count_here() -> int:
    """GPUs of this machine that CUDA_VISIBLE_DEVICES shows. Asks the driver and touches no CUDA; 0 without a driver."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return 0
    if nvml.nvmlInit_v2() != 0:
        return 0
    count = ctypes.c_uint()
    known = count.value if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 else 0
    device = ctypes.c_void_p()
    # As nodes count them: NVML still counts a GPU that has fallen off the bus, and has no handle of it.
    found = sum(nvml.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(device)) == 0 for index in range(known))
    nvml.nvmlShutdown()
    named = _named()
    return found if named is None else min(found, len(named))
