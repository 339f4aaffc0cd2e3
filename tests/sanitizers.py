"""Proof that `make sanitize` can fail: planted defects in C are reported, in the same set-up.

It runs in `make sanitize` only, which sets ``CC`` and ``CFLAGS``; pytest does not collect it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import fedmf._fast._kernels as steps
import secagg._fast._kernels as kernels

DEFECTS = """
#include <stdint.h>
void store(volatile uint8_t *a, long at) { a[at] = 1; }
int64_t add(int64_t a, int64_t b) { return a + b; }
"""
CALL = """
import ctypes, sys
import numpy as np
planted = ctypes.CDLL(sys.argv[1])
planted.store.argtypes = [ctypes.c_void_p, ctypes.c_long]
planted.add.argtypes = [ctypes.c_int64, ctypes.c_int64]
array = np.zeros(5, dtype=np.uint64)
buffer = ctypes.create_string_buffer(40)
planted.store(array.ctypes.data, 39), planted.store(buffer, 39), planted.add(2**63 - 2, 1)
print("sound", flush=True)
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Library of the defects, compiled as the kernels are."""
    folder = tmp_path_factory.mktemp("planted")
    source, library = folder / "planted.c", folder / "planted.so"
    source.write_text(DEFECTS)
    flags = shlex.split(os.environ["CFLAGS"])
    command = [os.environ["CC"], *flags, "-O3", "-fPIC", "-shared", source, "-o", library]
    subprocess.run(command, check=True)  # noqa: S603
    return library


@pytest.mark.parametrize("module", [kernels, steps])
def test_kernels_under_test_are_instrumented(module: object) -> None:
    code = Path(module.__file__).read_bytes()
    assert b"__asan_report_" in code
    assert b"__ubsan_handle_" in code


@pytest.mark.parametrize(
    ("call", "report"),
    [
        ("planted.store(array.ctypes.data, 40)", "AddressSanitizer: heap-buffer-overflow"),
        ("planted.store(buffer, 40)", "AddressSanitizer: heap-buffer-overflow"),
        ("planted.add(2**63 - 1, 1)", "runtime error: signed integer overflow"),
    ],
    ids=["array", "buffer", "overflow"],
)
def test_planted_defect_ends_the_process(planted: Path, call: str, report: str) -> None:
    command = [sys.executable, "-c", CALL + call, planted]
    done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603
    assert done.stdout == "sound\n", done.stderr
    assert report in done.stderr
    assert done.returncode != 0
