"""What Paillier takes per float on one core, against phe turn by turn.

Slots are of 32 bits: 20 for a float of [−8, 8] and its sign, 12 to sum 4,095 of them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from secagg.bench.rows import CLIP, ENCODING
from secagg.paillier import Packing, PrivateKey, set_threads

__all__ = [
    "ADD",
    "DECRYPT",
    "ENCRYPT",
    "OWNER",
    "PerFloat",
    "Work",
    "owners_gain",
    "per_float",
    "sample",
]

ENCRYPT, OWNER, DECRYPT, ADD = "encrypt", "encrypt, key's owner", "decrypt", "add"

SUMMANDS = 4095
CIPHERTEXTS = 512
"""Enough for two threads to have more to do than to start."""
ADDITIONS = 50
"""One is too short to be timed."""
REPEATS = 5


@dataclass(frozen=True)
class Work:
    """An operation on so many floats at a time."""

    call: Callable[[], object]
    floats: int


@dataclass(frozen=True)
class PerFloat:
    """An operation.

    Attributes
    ----------
    operation : str
    bits : int
        Of the key.
    seconds : float
        Of processor time for a float, with one thread.
    peer : float or None
        The same by phe, whose owner of a key encrypts as everybody does; None if it is not
        installed.
    speed_up : float
        How many times less time passes with two threads than with one.
    """

    operation: str
    bits: int
    seconds: float
    peer: float | None
    speed_up: float

    @property
    def ratio(self) -> float | None:
        """How many times faster than phe."""
        return None if self.peer is None else self.peer / self.seconds


def sample(length: int) -> list[float]:
    """Return so many floats of [−8, 8]."""
    return [float(x) for x in np.random.default_rng(0).uniform(-CLIP, CLIP, length)]


def per_float(key: PrivateKey, peer: Mapping[str, Work]) -> Iterator[PerFloat]:
    """Yield the operations, medians of several runs in turn; whoever encrypts, the peer once.

    The process is left with as many threads as cores.

    Parameters
    ----------
    key : PrivateKey
    peer : mapping of operation to Work
        Another implementation's; empty if there is none.
    """
    bits = key.public_key.bits
    by_peer: dict[str, float] = {}
    for name, ours in _works(key).items():

        def threads(count: int, ours: Work = ours) -> Work:
            def call() -> None:
                set_threads(count)
                ours.call()

            return Work(call, ours.floats)

        same = ENCRYPT if name == OWNER else name
        works = [threads(1), threads(2)]
        if same in peer and same not in by_peer:
            works.append(peer[same])
        try:
            one, two, *other = _in_turn(works)
        finally:
            set_threads(None)
        if other:
            by_peer[same] = other[0].processor
        speed_up = one.elapsed / two.elapsed
        yield PerFloat(name, bits, one.processor, by_peer.get(same), speed_up)


def owners_gain(measured: Iterable[PerFloat]) -> dict[int, float]:
    """Return for keys of so many bits how many times faster their owner encrypts."""
    taken = {(one.operation, one.bits): one.seconds for one in measured}
    sizes = [bits for operation, bits in taken if operation == OWNER]
    return {bits: taken[ENCRYPT, bits] / taken[OWNER, bits] for bits in sizes}


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


@dataclass(frozen=True)
class _Taken:
    """Seconds for a float."""

    processor: float
    elapsed: float


def _in_turn(works: Sequence[Work]) -> list[_Taken]:
    """Return each one's medians, after a run that warms up."""
    taken: list[list[_Taken]] = [[] for _ in works]
    for repeat in range(1 + REPEATS):
        for work, so_far in zip(works, taken, strict=True):
            processor, elapsed = time.process_time(), time.perf_counter()
            work.call()
            processor, elapsed = time.process_time() - processor, time.perf_counter() - elapsed
            if repeat:
                so_far.append(_Taken(processor / work.floats, elapsed / work.floats))
    return [
        _Taken(median(one.processor for one in each), median(one.elapsed for one in each))
        for each in taken
    ]
