"""What measurements depend on, and every table of them discloses."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import gmpy2

from secagg import _fast

__all__ = ["machine"]


def machine() -> dict[str, str]:
    """Name the processor, and the versions of all that computes."""
    return {
        "cpu": _cpu(),
        "cores": str(os.cpu_count()),
        "python": platform.python_version(),
        "numpy": version("numpy"),
        "cryptography": version("cryptography"),
        "gmpy2": gmpy2.version(),
        "gmp": gmpy2.mp_version(),
        "tier": _fast.TIER,
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
