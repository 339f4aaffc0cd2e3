"""Paillier per float on one core, against phe turn by turn.

Slots are of 32 bits: 20 for a float of [−8, 8] and its sign, 12 to sum 4,095 of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from secagg.bench.cases import CLIP, ENCODING
from secagg.bench.timing import in_turn
from secagg.paillier import Packing, PrivateKey, set_threads

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
    """Processor seconds of an operation per float, with one thread, by a key of so many bits.

    Attributes
    ----------
    peer : float or None
        The same by phe, whose owner of a key encrypts as everybody does; None if it is not
        installed.
    speed_up : float
        Ratio of the wall-clock times with one thread and with two.
    """

    operation: str
    bits: int
    seconds: float
    peer: float | None
    speed_up: float

    @property
    def ratio(self) -> float | None:
        """Speed relative to phe."""
        return None if self.peer is None else self.peer / self.seconds

    def document(self) -> dict[str, object]:
        """Return the attributes as plain values, with the ratio."""
        return {
            "operation": self.operation,
            "bits": self.bits,
            "seconds": self.seconds,
            "phe": self.peer,
            "ratio": self.ratio,
            "speed_up": self.speed_up,
        }


def sample(length: int) -> list[float]:
    """Return so many floats of [−8, 8]."""
    return [float(x) for x in np.random.default_rng(0).uniform(-CLIP, CLIP, length)]


def per_float(key: PrivateKey, peer: Mapping[str, Work]) -> Iterator[PerFloat]:
    """Yield the operations, medians of several runs in turn with those of another library.

    The peer's one way to encrypt is timed once. The process is left with as many threads as
    cores.
    """
    bits = key.public_key.bits
    by_peer: dict[str, float] = {}
    for name, ours in _works(key).items():

        def threaded(count: int, ours: Work = ours) -> Callable[[], None]:
            def call() -> None:
                set_threads(count)
                ours.call()

            return call

        same = ENCRYPT if name == OWNER else name
        calls: list[Callable[[], object]] = [threaded(1), threaded(2)]
        if same in peer and same not in by_peer:
            calls.append(peer[same].call)
        try:
            one, two, *other = in_turn(calls, REPEATS)
        finally:
            set_threads(None)
        if other:
            by_peer[same] = other[0].processor / peer[same].floats
        seconds, speed_up = one.processor / ours.floats, one.elapsed / two.elapsed
        yield PerFloat(name, bits, seconds, by_peer.get(same), speed_up)


def owners_gain(measured: Iterable[PerFloat]) -> dict[int, float]:
    """Return by bits of the key how many times faster its owner encrypts."""
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
