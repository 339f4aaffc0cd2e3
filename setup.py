"""Compile the kernels of secagg and fedmf; everything else is in pyproject.toml.

Two abi3 extensions per platform, no ``-march``: those of secagg choose their instructions when
they are imported. ``-O3`` matters for the mask kernels, ``-g0`` makes the files five times
smaller, and contraction to fused multiply-add would make results depend on the CPU. Set
``SECAGG_NO_EXTENSION=1`` to build without a C compiler: the library then runs on its
pure-Python twins, slower and with the same results.
"""

import os

from setuptools import Extension, setup

SOURCES = "secagg/_fast/src"
STEPS = "fedmf/_fast/src"


COMMON = {
    "define_macros": [("Py_LIMITED_API", "0x030B0000")],
    "py_limited_api": True,
    "extra_compile_args": ["-O3", "-g0", "-ffp-contract=off"],
}

kernels = Extension(
    "secagg._fast._kernels",
    sources=[
        "secagg/_fast/_kernels.pyx",
        f"{SOURCES}/masks.c",
        f"{SOURCES}/m61.c",
        f"{SOURCES}/fixedpoint.c",
        f"{SOURCES}/bits.c",
        f"{SOURCES}/modular.c",
        f"{SOURCES}/modular_ifma.c",
        f"{SOURCES}/modular_portable.c",
    ],
    depends=[
        "secagg/_fast/_kernels.pxd",
        "secagg/_fast/_modular.pxi",
        f"{SOURCES}/kernels.h",
        f"{SOURCES}/modular.h",
    ],
    include_dirs=[SOURCES],
    **COMMON,
)
steps = Extension(
    "fedmf._fast._kernels",
    sources=["fedmf/_fast/_kernels.pyx", f"{STEPS}/steps.c"],
    depends=[f"{STEPS}/steps.h"],
    include_dirs=[STEPS],
    **COMMON,
)

setup(
    ext_modules=[] if os.environ.get("SECAGG_NO_EXTENSION") == "1" else [kernels, steps],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
