"""Compile ``secagg._fast._kernels``; everything else is in pyproject.toml.

One abi3 extension per platform, no ``-march``: the kernels choose their instructions when
they are imported. ``-O3`` matters for the mask kernels, ``-g0`` makes the file five times
smaller, and contraction to fused multiply-add would make fixed point depend on the CPU. Set
``SECAGG_NO_EXTENSION=1`` to build without a C compiler: the library then runs on its
pure-Python twins, slower and with the same results.
"""

import os

from setuptools import Extension, setup

SOURCES = "secagg/_fast/src"

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
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    py_limited_api=True,
    extra_compile_args=["-O3", "-g0", "-ffp-contract=off"],
)

setup(
    ext_modules=[] if os.environ.get("SECAGG_NO_EXTENSION") == "1" else [kernels],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
