"""Compilation of `drivers.c` with the kernels, and the findings of the tools that run it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "secagg" / "_fast" / "src"
FLAGS = ["-O3", "-ffp-contract=off"]  # those of setup.py

SECRET = (
    "encode", "mask_words", "mask_mod", "m61_add", "m61_sub", "m61_mul", "m61_inv", "m61_dot",
    "m61_matmul", "m61_poly_eval", "pack_bits", "pack_into", "modular_multiply",
    "modular_power", "prime_matmul", "prime_poly_eval", "x25519", "sha256", "hkdf",
    "gcm_seal", "gcm_open", "gaussian_shares", "rotate", "widen",
)  # fmt: skip
"""Kernels that touch secrets in constant time."""

EXCEPTIONS = ("discrete_gaussian", "modular_power_fixed")
"""Kernels whose time depends on secrets; SECURITY.md says so."""

PUBLIC = (
    "decode",  # a sum
    "unpack_bits",  # masked vectors
    "m61_errors",  # shares revealed to the server
    "m61_lagrange_at_zero",  # points
    "modular_radix",  # sizes
    "modular_table",  # powers of a public base
    "modular_width",
    "prime_lagrange_at_zero",  # points
)
"""Kernels that touch no secret."""

PLANTED = ("planted_branch", "planted_address")
"""Functions of `drivers.c` that every tool must report."""


@dataclass(frozen=True)
class Tool:
    """A checker, the compiler of its program, and the packages of Debian that have both.

    Without a wrapper, the first finding ends the program.
    """

    name: str
    compiler: str
    options: tuple[str, ...]
    wrapper: tuple[str, ...]
    packages: str

    @property
    def missing(self) -> str:
        """Packages to install before this tool can run, or an empty string."""
        needed = (self.compiler, *self.wrapper[:1])
        return "" if all(map(shutil.which, needed)) else self.packages

    def run(self, folder: Path, names: Sequence[str]) -> dict[str, str]:
        """Return the report on each kernel, empty if there is no finding."""
        program = folder / self.name.replace(" ", "-")
        _compile(self, program)
        # the library that `make sanitize` loads into every process does not go with these tools
        environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
        reports = {}
        for some in [names] if self.wrapper else [[name] for name in names]:
            command = [*self.wrapper, str(program), *some]
            done = subprocess.run(  # noqa: S603
                command, capture_output=True, text=True, check=False, env=environment
            )
            silent = {line.removesuffix(" 0") for line in done.stdout.splitlines()}
            reports |= {name: "" if name in silent else done.stderr or "?" for name in some}
        return reports


VALGRIND = ("valgrind", "--quiet")
WITH_GCC = Tool("valgrind, gcc", "gcc", (), VALGRIND, "gcc valgrind")
WITH_CLANG = Tool("valgrind, clang", "clang", ("-gdwarf-4",), VALGRIND, "clang valgrind")
SANITIZER = Tool("MemorySanitizer", "clang", ("-fsanitize=memory",), (), "clang")
TOOLS = (WITH_GCC, WITH_CLANG, SANITIZER)


def _compile(tool: Tool, program: Path) -> None:
    sources = [str(HERE / "drivers.c"), *map(str, sorted(SOURCES.glob("*.c")))]
    folders = [f"-I{SOURCES}", f"-I{HERE}", "-include", "secret.h"]
    command = [tool.compiler, *FLAGS, "-g", *tool.options, *folders, *sources]
    subprocess.run([*command, "-o", str(program)], check=True)  # noqa: S603


def lacking() -> list[str]:
    """Return the instructions of kernels that this CPU lacks, by their names in Linux."""
    path = Path("/proc/cpuinfo")
    flags = path.read_text(encoding="utf-8").split() if sys.platform == "linux" else []
    return [name for name in ("aes", "vaes", "avx512ifma") if name not in flags]
