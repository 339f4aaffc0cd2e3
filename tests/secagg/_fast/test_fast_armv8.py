"""Masks of ARMv8, cross-compiled and emulated: known answers, and the twin's bits."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from constant_time.tools import FLAGS, SOURCES
from mask_case import KNOWN
from secagg._fast import reference

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
DRIVER = Path(__file__).parents[2] / "support" / "mask_driver.c"

pytestmark = [
    pytest.mark.large,
    pytest.mark.skipif(
        not (shutil.which(COMPILER) and shutil.which(EMULATOR)),
        reason="needs gcc-aarch64-linux-gnu qemu-user",
    ),
]


class Case(NamedTuple):
    """Arguments of `mask_words`, or of `mask_mod` for a modulus above 0."""

    acc: np.ndarray
    keys: bytes
    negate: bytes
    modulus: int
    start: int

    def packed(self) -> bytes:
        lane = 8 * self.acc.itemsize
        numbers = lane, self.acc.size, len(self.negate), self.modulus, self.start
        return struct.pack("<5Q", *numbers) + self.negate + self.keys + self.acc.tobytes()

    def expected(self) -> bytes:
        acc = self.acc.copy()
        if self.modulus:
            reference.mask_mod(acc, self.keys, self.negate, self.modulus, self.start)
        else:
            reference.mask_words(acc, self.keys, self.negate, self.start)
        return acc.tobytes()


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("armv8") / "masks"
    sources = [str(DRIVER), *map(str, sorted(SOURCES.glob("masks*.c")))]
    command = [COMPILER, *FLAGS, "-Wall", "-Wextra", "-Werror", "-static", f"-I{SOURCES}"]
    subprocess.run([*command, *sources, "-o", str(program)], check=True)  # noqa: S603
    return program


def run(driver: Path, cases: list[Case]) -> list[bytes]:
    done = subprocess.run(  # noqa: S603
        [EMULATOR, str(driver), "armv8"],
        input=b"".join(case.packed() for case in cases),
        capture_output=True,
        check=True,
    )
    ends = np.cumsum([case.acc.nbytes for case in cases]).tolist()
    assert len(done.stdout) == ends[-1]
    return [done.stdout[a:b] for a, b in zip([0, *ends], ends, strict=False)]


@pytest.mark.parametrize("lane", [np.uint32, np.uint64])
def test_check12_armv8_gives_known_answers(driver, lane):
    size = 8 * np.dtype(lane).itemsize
    cases = [
        Case(np.zeros(4 * len(block) // size, lane), bytes.fromhex(key), b"\0", 0, 0)
        for key, block in KNOWN
    ]
    assert [acc.hex() for acc in run(driver, cases)] == [block for _, block in KNOWN]


def test_armv8_gives_the_bits_of_the_twin(driver):
    rng = np.random.default_rng(8)
    cases = []
    for _ in range(400):
        k, size = int(rng.integers(1, 64)), int(rng.choice([1, 7, 50, 300, 2000]))
        modulus = int(rng.choice([0, 0, 3, 2**61 - 1, 3 << 60, 2**62, rng.integers(2, 2**62)]))
        lane = np.uint32 if modulus == 0 and rng.integers(2) else np.uint64
        start = int(rng.choice([0, rng.integers(0, 200), rng.integers(0, 2**60 - 2000)]))
        acc = rng.integers(0, modulus or np.iinfo(lane).max, size, dtype=lane)
        signs = rng.integers(0, 2, k, dtype=np.uint8).tobytes()
        cases.append(Case(acc, rng.bytes(16 * k), signs, modulus, start))
    for case, acc in zip(cases, run(driver, cases), strict=True):
        assert acc == case.expected(), case
