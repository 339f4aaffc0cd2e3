"""Times of Paillier per float, against phe."""

from __future__ import annotations

import os

import numpy as np
import pytest

from paillier_keys import keypair
from secagg._threads import threads
from secagg.bench import per_float
from secagg.bench.per_float import Work
from secagg.kit import timing


def test_per_float_is_in_proportion_to_floats_and_peer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With clocks that tick with every call: with two threads, half as much."""
    elapsed, processor = [0.0], [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: elapsed[0])
    monkeypatch.setattr(timing.time, "process_time", lambda: processor[0])

    def work(seconds: float) -> None:
        elapsed[0] += seconds / threads()
        processor[0] += seconds

    works = {
        per_float.ENCRYPT: Work(lambda: work(8.0), 4),
        per_float.OWNER: Work(lambda: work(4.0), 4),
        per_float.ADD: Work(lambda: work(1.0), 1),
    }
    monkeypatch.setattr(per_float, "_works", lambda _: works)
    asked = [600.0] * (1 + per_float.REPEATS)  # one figure is requested, not two
    theirs = {per_float.ENCRYPT: Work(lambda: work(asked.pop()), 3)}
    encrypt, owner, add = per_float.per_float(keypair(512), theirs)
    assert (encrypt.seconds, encrypt.phe, encrypt.ratio) == (2.0, 200.0, 100.0)
    assert (owner.seconds, owner.phe, owner.ratio) == (1.0, 200.0, 200.0)
    assert per_float.owners_gain((encrypt, owner, add)) == {512: 2.0}
    assert (add.seconds, add.phe, add.ratio) == (1.0, None, None)
    assert encrypt.speed_up == owner.speed_up == 2.0
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(5)))
    assert threads() == 5


def test_per_float_times_the_library_itself() -> None:
    key = keypair(512)
    works = per_float._works(key)
    vector = works[per_float.ENCRYPT].call()
    own = works[per_float.OWNER].call()
    assert vector.packing.slot_bits == 32
    assert len(vector.ciphertexts) == per_float.CIPHERTEXTS
    assert works[per_float.ENCRYPT].floats == vector.packing.length
    assert works[per_float.ADD].floats == per_float.ADDITIONS * vector.packing.length
    twice = works[per_float.DECRYPT].call()
    once = key.decrypt_vector(vector).integers
    assert np.array_equal(once, key.decrypt_vector(own).integers)
    assert np.array_equal(2 * once, twice.integers)
