"""Cost of Paillier's operations per float on one core, compared with the package phe.

A slot has 32 bits: 20 for a float in [−8, 8] with its sign, 12 for sums of 4,095 floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from secagg.bench.cases import CLIP, ENCODING
from secagg.kit.timing import in_turn
from secagg.paillier import Packing, PrivateKey, set_threads

ENCRYPT, OWNER, DECRYPT, ADD = "encrypt", "encrypt, key's owner", "decrypt", "add"

SUMMANDS = 4095
CIPHERTEXTS = 512  # enough work to outweigh the start of two threads
ADDITIONS = 50  # one is too short to be timed
REPEATS = 5


class Work(NamedTuple):
    """Function to be timed, and the number of floats that a call processes."""

    call: Callable[[], object]
    floats: int


@dataclass(frozen=True)
class PerFloat:
    """Processor time of an operation per float, with one thread and a key of `bits` bits."""

    operation: str
    bits: int
    seconds: float
    phe: float | None  # of phe, if installed, which has a single way to encrypt
    ratio: float | None  # speed relative to phe
    speed_up: float  # wall-clock time with one thread ÷ with two


def sample(length: int) -> list[float]:
    """Return `length` random floats in [−8, 8]."""
    drawn: list[float] = np.random.default_rng(0).uniform(-CLIP, CLIP, length).tolist()
    return drawn


def per_float(key: PrivateKey, peer: Mapping[str, Work]) -> Iterator[PerFloat]:
    """Time each operation with `key`, in turn with phe's in `peer`; yield the medians.

    Afterwards the number of threads is reset to the default, all cores.
    """
    by_peer: dict[str, float] = {}
    for name, ours in _works(key).items():
        # phe's owner encrypts like anybody else
        same = ENCRYPT if name == OWNER else name
        calls: list[Callable[[], object]]
        calls = [partial(_threaded, threads, ours.call) for threads in (1, 2)]
        if same in peer and same not in by_peer:
            calls.append(peer[same].call)
        try:
            one, two, *other = in_turn(calls, REPEATS)
        finally:
            set_threads(None)
        if other:
            by_peer[same] = other[0].processor / peer[same].floats
        seconds, theirs = one.processor / ours.floats, by_peer.get(same)
        ratio, speed_up = theirs and theirs / seconds, one.elapsed / two.elapsed
        yield PerFloat(name, key.public_key.bits, seconds, theirs, ratio, speed_up)


def owners_gain(measured: Iterable[PerFloat]) -> dict[int, float]:
    """Return the speed-up of encryption by the key's owner, for each length of the key."""
    taken = {(one.operation, one.bits): one.seconds for one in measured}
    sizes = [bits for operation, bits in taken if operation == OWNER]
    return {bits: taken[ENCRYPT, bits] / taken[OWNER, bits] for bits in sizes}


def _threaded(threads: int, call: Callable[[], object]) -> object:
    set_threads(threads)
    return call()


def _works(key: PrivateKey) -> dict[str, Work]:
    public = key.public_key
    slots = Packing(encoding=ENCODING, length=1, summands=SUMMANDS).slots(public.bits)
    length = CIPHERTEXTS * slots - 1  # the last slot counts the summands
    packing = Packing(encoding=ENCODING, length=length, summands=SUMMANDS)
    vector = np.array(sample(length))
    a, b = (key.encrypt_vector(vector, packing) for _ in range(2))
    total = a + b

    def add() -> None:
        for _ in range(ADDITIONS):
            a + b

    return {
        ENCRYPT: Work(lambda: public.encrypt_vector(vector, packing), length),
        OWNER: Work(lambda: key.encrypt_vector(vector, packing), length),
        DECRYPT: Work(lambda: key.decrypt_vector(total), length),
        ADD: Work(add, ADDITIONS * length),
    }
