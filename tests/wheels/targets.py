"""Platforms of the wheels, and what setuptools must know to compile for them."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

SUFFIX = ".abi3.so"
"""End of the names of compiled parts, unless their platform is Windows."""


@dataclass(frozen=True)
class Target:
    """A wheel's platform.

    Parameters
    ----------
    zig : str, its name for the compiler, with the oldest version of the system or C library
    tag : str, its name in the wheel's
    machine : str, the processor in the header of a compiled part, as LIEF names it
    libraries : patterns of the names of libraries that a compiled part may link
    link : options of the linker
    suffix : str, end of the name of a compiled part
    """

    zig: str
    tag: str
    machine: str
    libraries: tuple[str, ...]
    link: tuple[str, ...] = ()
    suffix: str = SUFFIX

    @property
    def parts(self) -> set[str]:
        """Names of the compiled parts in the wheel."""
        return {f"{package}/_fast/_kernels{self.suffix}" for package in ("secagg", "fedmf")}

    def compiler(self) -> list[str]:
        return [sys.executable, "-m", "ziglang", "cc", "-target", self.zig]

    def environment(self, include: Path, libraries: Path) -> dict[str, str]:
        """Return the variables that setuptools and setup.py read.

        Parameters
        ----------
        include : folder with Python.h and the pyconfig.h of any platform
        libraries : folder with the libraries that `link` names
        """
        cc = [*self.compiler(), "-I", str(include)]
        variables = {
            "CC": shlex.join(cc),
            "CFLAGS": "-DNDEBUG -fwrapv -Wall",
            # the default has folders of the Python that builds
            "LDSHARED": shlex.join([*cc, "-shared", "-s", f"-L{libraries}", *self.link]),
            "SECAGG_REQUIRE_EXTENSION": "1",
        }
        if self.suffix != SUFFIX:
            variables["SETUPTOOLS_EXT_SUFFIX"] = self.suffix
        return variables


GLIBC = ("libc.so.6", "libm.so.6")
# zig names musl's library libc.so, and distributions like the library that is linked here
MUSL = ("-nostdlib", "-lcompiler_rt", "-Wl,--no-as-needed", "-lmusl")
# the process that loads a part has the functions of Python; only Windows needs a library's name
MACOS = ("-undefined", "dynamic_lookup", f"-Wl,-install_name,_kernels{SUFFIX}")
WINDOWS = ("-lpython3", "-Wl,--out-implib=unused.lib")
WINDOWS_LIBRARIES = ("python3.dll", "KERNEL32.dll", "api-ms-win-crt-*.dll")
MACOS_LIBRARIES = ("/usr/lib/libSystem.B.dylib", f"_kernels{SUFFIX}")  # and its own name

TARGETS = (
    Target("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64", "X86_64", GLIBC),
    Target("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64", "AARCH64", GLIBC),
    Target(
        "x86_64-linux-musl", "musllinux_1_2_x86_64", "X86_64", ("libc.musl-x86_64.so.1",), MUSL
    ),
    Target("x86_64-windows-gnu", "win_amd64", "AMD64", WINDOWS_LIBRARIES, WINDOWS, ".pyd"),
    Target("aarch64-macos.11.0", "macosx_11_0_arm64", "ARM64", MACOS_LIBRARIES, MACOS),
    Target("x86_64-macos.10.13", "macosx_10_13_x86_64", "X86_64", MACOS_LIBRARIES, MACOS),
)
