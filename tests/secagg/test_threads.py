"""Threads: the same bits for any number of them and any tier, and none for short work."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secagg
from effort import examples
from frames import leaks
from mask_case import IMPLEMENTATIONS
from secagg import (
    FixedPoint,
    Integers,
    ParameterError,
    RoundParams,
    _fast,
    _pool,
    _threads,
    simulate_round,
)
from secagg._fast import reference
from secagg._secrets import without_frames
from secagg.encoding import Ring, fixed_point, integers, pieces
from secagg.protocol.masks import MaskSum

MODULI = st.one_of(
    st.integers(1, 64).map(lambda bits: 1 << bits),
    st.sampled_from([257, 2**61 - 1, 3 << 60]),
    st.integers(2, 2**62),
)
LONG = 700_000  # elements that several threads encode


def helpers() -> set[object]:
    return set(_pool._workers)


def end_threads(count: int | None) -> None:
    """Set the number of threads, and wait for the former ones to end."""
    secagg.set_threads(count)
    _pool.end_threads(wait=True)


def compute_at_once(count: int) -> None:
    """Let `count` threads compute at the same time, the caller among them."""
    together, met = threading.Barrier(count), threading.local()

    def work(_: slice) -> None:
        if not hasattr(met, "others"):
            met.others = True
            together.wait(60)

    _threads.in_slices(work, 1000)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    end_threads(None)
    yield
    end_threads(None)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads begin for the shortest vectors."""
    monkeypatch.setattr(_fast, "MASK_BYTES", 1)
    monkeypatch.setattr(_fast, "SLICE_BYTES", 1)
    for module in (fixed_point, integers):
        monkeypatch.setattr(module, "_ALONE", 0)
        monkeypatch.setattr(module, "_LEAST", 8)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Greatest numbers of threads of all pools that had one."""
    found, real = list[int](), _pool._Pool.begin
    pools = list[_pool._Pool]()

    def begin(pool: _pool._Pool, most: int) -> None:
        if pool not in pools:
            pools.append(pool)
            found.append(most)
        real(pool, most)

    monkeypatch.setattr(_pool._Pool, "begin", begin)
    return found


def entropy(size: int) -> bytes:
    return bytes(range(size))


def masks_of(count: int) -> MaskSum:
    total = MaskSum()
    for j in range(count):
        total.add(j.to_bytes(16, "big"), negate=j % 3 == 0)
    return total


def masked(count: int, ring: Ring, size: int) -> np.ndarray:
    values = ring.zeros(size)
    masks_of(count).apply(values, ring)
    return values


def expected_of(count: int, ring: Ring, size: int) -> np.ndarray:
    values, total = ring.zeros(size), masks_of(count)
    arguments = b"".join(total._keys), bytes(total._signs)
    if ring.is_power_of_two:
        reference.mask_words(values, *arguments)
    else:
        reference.mask_mod(values, *arguments, ring.modulus)
    return values


def test_check12_masks_are_the_same_in_any_tier_and_threads(soon: None) -> None:
    @given(
        tier=st.sampled_from(sorted(IMPLEMENTATIONS)),
        threads=st.integers(1, 5),
        count=st.integers(0, 9),
        modulus=MODULI,
        size=st.integers(0, 1500),
    )
    @examples(60)
    def check(tier: str, threads: int, count: int, modulus: int, size: int) -> None:
        ring = Ring(modulus)
        secagg.set_threads(threads)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_fast, "mask_words", IMPLEMENTATIONS[tier].mask_words)
            patch.setattr(_fast, "mask_mod", IMPLEMENTATIONS[tier].mask_mod)
            found = masked(count, ring, size)
        np.testing.assert_array_equal(found, expected_of(count, ring, size))

    check()


@pytest.mark.parametrize("size", [0, 5, 1000, 2 * pieces._SLICE + 77])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
def test_encoding_is_the_same_for_any_threads(
    soon: None, rounding: str, dtype: type, size: int
) -> None:
    encoding, ring = FixedPoint(8.0, rounding=rounding), Ring(2**40)
    values = np.random.default_rng(size).uniform(-9, 9, size).astype(dtype)
    found = []
    for threads in (1, 2, 3):
        secagg.set_threads(threads)
        lanes, clipped = encoding.encode(values, ring, 3, entropy)
        floats, exact = encoding.decode(lanes, ring)
        found.append([lanes.tobytes(), clipped, floats.tobytes(), exact.tobytes()])
    assert found[0] == found[1] == found[2]
    assert clipped == np.count_nonzero(np.abs(values) > 8)
    np.testing.assert_array_equal(floats, exact / encoding.scale)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_integers_are_the_same_for_any_threads(soon: None, threads: int) -> None:
    secagg.set_threads(threads)
    values = np.arange(1000)
    lanes, _ = Integers(1000).encode(values, Ring(2**32), 7)
    np.testing.assert_array_equal(lanes, 7 * values)


@pytest.mark.parametrize("threads", [1, 3])
def test_error_names_the_first_bad_element_of_any_thread(soon: None, threads: int) -> None:
    secagg.set_threads(threads)
    floats, counts = np.zeros(1000), np.zeros(1000, np.int64)
    floats[[300, 990]], counts[[300, 990]] = np.nan, -1
    for encoding, vector in ((FixedPoint(8.0), floats), (Integers(9), counts)):
        with pytest.raises(ParameterError, match=r"^element 300 of the vector"):
            encoding.encode(vector, Ring(2**32))


@pytest.mark.large
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_sum_of_long_vectors_is_exact_for_any_threads(begun: list[int], threads: int) -> None:
    secagg.set_threads(threads)
    encoding = FixedPoint(8.0, rounding="nearest")
    params = RoundParams(n_clients=4, threshold=3, length=LONG, encoding=encoding)
    vectors = np.random.default_rng(5).uniform(-8, 8, (4, LONG))
    found = simulate_round(list(vectors), params, dropouts={2: "masked_input"})
    exact = np.rint(vectors[[0, 1, 3]] * encoding.scale).sum(axis=0)
    np.testing.assert_array_equal(found.integers, exact.astype(np.int64))
    assert set(begun) == {threads - 1} - {0}


def test_short_work_stays_in_its_thread(
    begun: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it would make several slices."""
    secagg.set_threads(4)
    monkeypatch.setattr(_fast, "MASK_BYTES", 8 << 20)
    encoding, ring = FixedPoint(8.0), Ring(2**32)
    masked(6, ring, 300_000)
    encoding.decode(encoding.encode(np.zeros(300_000), ring)[0], ring)
    Integers(9).encode(np.zeros(300_000, np.int64), ring)
    monkeypatch.setattr(_fast, "SLICE_BYTES", 1 << 20)
    masked(8, ring, 300_000)
    assert begun == []
    monkeypatch.setattr(_fast, "SLICE_BYTES", 1 << 14)
    masked(8, ring, 300_000)
    assert begun == [3]
    secagg.set_threads(3)
    encoding.encode(np.zeros(LONG), ring)
    assert begun == [3, 2]


def test_threads_wait_for_the_next_call() -> None:
    secagg.set_threads(2)
    compute_at_once(2)
    first = helpers()
    compute_at_once(2)
    assert helpers() == first
    assert len(first) == 1


def test_threads_are_no_more_than_set(soon: None) -> None:
    secagg.set_threads(3)
    ring, expected = Ring(2**32), expected_of(3, Ring(2**32), 1000)
    with ThreadPoolExecutor(6) as callers:
        for found in callers.map(lambda _: masked(3, ring, 1000), range(60)):
            np.testing.assert_array_equal(found, expected)
    compute_at_once(3)
    assert len(helpers()) == 2


def test_set_threads_ends_the_threads() -> None:
    secagg.set_threads(3)
    compute_at_once(3)
    assert len(helpers()) == 2
    end_threads(1)
    assert helpers() == set()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("raced", [False, True])
def test_fork_after_threads_computes_with_threads(
    soon: None, monkeypatch: pytest.MonkeyPatch, raced: bool
) -> None:
    """The threads end before the fork, unless another thread began them meanwhile."""
    ring = Ring(2**32)
    secagg.set_threads(3)
    expected = masked(3, ring, 1000)
    compute_at_once(3)
    if raced:
        monkeypatch.setattr(_pool, "end_threads", lambda *, wait: None)
    child = os.fork()
    if child == 0:
        same = not helpers() and np.array_equal(masked(3, ring, 1000), expected)
        compute_at_once(3)
        os._exit(0 if same and len(helpers()) == 2 else 1)
    assert len(helpers()) == (2 if raced else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    np.testing.assert_array_equal(masked(3, ring, 1000), expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_by_c_code_computes_with_threads_and_ends() -> None:
    """Without the hooks, threads of the parent seem to be there."""
    secagg.set_threads(3)
    compute_at_once(3)
    child = ctypes.PyDLL(None).fork()
    if child == 0:
        signal.alarm(60)  # instead of waiting for ever
        _pool.end_threads(wait=True)  # as at exit
        compute_at_once(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_without_more_threads_the_caller_does_the_work(
    soon: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_pool._thread, "start_new_thread", refuse)
    secagg.set_threads(3)
    ring = Ring(2**32)
    np.testing.assert_array_equal(masked(3, ring, 1000), expected_of(3, ring, 1000))
    monkeypatch.undo()  # later ones begin them again
    compute_at_once(3)


def test_interrupted_start_leaves_no_slice_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    secagg.set_threads(2)
    gate, ran = threading.Event(), list[slice]()
    _pool.submit(_pool.Call(lambda: bool(gate.wait(60)) and None), 1)

    def interrupted(call: _pool.Call, most: int) -> None:
        _pool.submit(call, most)
        raise KeyboardInterrupt

    monkeypatch.setattr(_threads, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _threads.in_slices(ran.append, 1000)
    gate.set()
    end_threads(1)
    assert ran == []


def test_interrupted_wait_still_ends_after_the_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while the caller waits: a helper is in the middle of its slice."""
    caller, begun, interrupted = threading.get_ident(), threading.Event(), threading.Event()
    done, waits = list[slice](), list[bool]()

    class Interrupted(_pool.Event):
        def wait(self) -> None:
            waits.append(self._happened)
            if len(waits) == 1:
                interrupted.set()
                raise KeyboardInterrupt
            super().wait()

    def work(rows: slice) -> None:
        if threading.get_ident() == caller:
            begun.wait(60)
        else:
            begun.set()
            interrupted.wait(60)
            done.append(rows)

    monkeypatch.setattr(_pool, "Event", Interrupted)
    secagg.set_threads(2)
    with pytest.raises(KeyboardInterrupt):
        _threads.in_slices(work, 1000)
    assert (len(waits), waits[0], len(done) > 0) == (2, False, True)


def failing_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let masks fail in every thread but the caller's, which waits for one to fail."""
    caller, failed, real = threading.get_ident(), threading.Event(), _fast.mask_words

    def fail(*arguments: object) -> None:
        if threading.get_ident() != caller:
            failed.set()
            raise MemoryError
        failed.wait(60)
        real(*arguments)

    monkeypatch.setattr(_fast, "mask_words", fail)


@pytest.mark.parametrize("work", ["masks", "encoding"])
def test_check46_frames_of_a_failed_thread_have_no_secret(
    soon: None, monkeypatch: pytest.MonkeyPatch, work: str
) -> None:
    failing_elsewhere(monkeypatch)
    secagg.set_threads(2)
    mark = np.float64(1.4142135623730951)
    secrets = [mark.tobytes(), b"sixteen byte key"]

    def masks() -> object:
        total, values = MaskSum(), np.full(1000, mark).view(np.uint64)
        total.add(b"sixteen byte key")
        return total.apply(values, Ring(2**64))

    def encoding() -> object:
        return FixedPoint(8.0).encode(
            np.full(1000, mark), Ring(2**32), 1, lambda _: b"sixteen byte key"
        )

    call: Callable[[], object] = without_frames({"masks": masks, "encoding": encoding}[work])
    with pytest.raises(MemoryError) as caught:
        call()
    assert leaks(caught.value, secrets, __name__) == []
