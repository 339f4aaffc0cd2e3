"""Secret sharing against homomorphic encryption: what is measured, and what is scaled."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from secagg._threads import threads
from secagg.bench import he, keyed, run, ss
from secagg.bench.cases import ENCODING, F64, Case, Figure, Load, System
from secagg.bench.keyed import Keyed, Opened, sample
from secagg.bench.roles import Role
from secagg.errors import ParameterError, SecAggError
from secagg.kit.timing import Peak
from secagg.protocol.traffic import client_traffic

PLAIN = System("plain", "plain", "he", 1, "-", "every party")
MEGABYTES = 1 << 26


@dataclass
class Plain:
    """All three parties of a system without encryption, with a key holder of given slowness."""

    wrong: float = 0.0
    grow: int = 0
    work: float = 0.0
    sum: F64 | None = None

    def encrypt(self, vector: F64) -> bytes:
        return vector.tobytes()

    def add(self, message: bytes, length: int) -> None:
        assert len(message) == 8 * length
        vector = np.frombuffer(message)
        self.sum = vector if self.sum is None else self.sum + vector

    def total(self) -> bytes:
        assert self.sum is not None
        total, self.sum = self.sum, None
        return total.tobytes()

    def decrypt(self, total: bytes, length: int) -> Opened:
        assert len(total) == 8 * length
        Party().grow(self.grow)
        Party().work(self.work)
        return Opened.clear(np.frombuffer(total) + self.wrong)


def plain(*holder: float, shared: bool = False) -> Keyed:
    return Keyed(PLAIN, "", Plain, Plain, partial(Plain, *holder), slots=8, shared=shared)


def test_scaled_figure_is_proportional_and_marked() -> None:
    assert (Figure(3.0).value, Figure(3.0).measured) == (3.0, True)
    sample = Figure(2.0, 10, 300)
    assert (sample.value, sample.measured) == (60.0, False)
    both = sample + Figure(5.0)
    assert both.value == pytest.approx(65.0)
    assert (both.done, both.of) == (10, 300)
    assert (Figure(1.0, 7, 7) + Figure(2.0)).measured
    together = Load(sample, None) + Load(Figure(5.0), 100)
    assert (together.seconds.value, together.memory) == (pytest.approx(65.0), None)
    assert (Load(Figure(1.0), 300) + Load(Figure(2.0), 100)).memory == 300


def test_sample_is_whole_units_within_the_budget() -> None:
    assert sample(1000, 10, 0.1, budget=0.99) == 90
    assert sample(1000, 10, 5.0, budget=1.0) == 10  # one unit at least
    assert sample(1000, 10, 0.001, budget=1.0) == 1000  # and all at most
    assert sample(7, 10, 0.0, budget=1.0) == 7


def test_work_within_the_budget_is_measured_whole() -> None:
    row = keyed.measure(plain(), Case(20, 100), budget=60.0)
    assert row.holder is not None
    for load in (row.client, row.server, row.holder):
        assert load.seconds.measured
        assert load.memory is not None
    assert (row.bytes_up.value, row.bytes_down.value, row.error) == (800, 0, 0.0)
    assert row.holder_bytes_in == Figure(800, 13, 13)
    assert row.holder_bytes_out == Figure(800, 13, 13)
    assert row.clients_run == keyed.DISTINCT


def test_work_beyond_the_budget_is_sampled_and_scaled() -> None:
    row = keyed.measure(plain(), Case(20, 100), budget=1e-12)
    assert row.holder is not None
    client, server, holder = row.client.seconds, row.server.seconds, row.holder.seconds
    assert (client.done, client.of) == (holder.done, holder.of) == (1, 13)
    assert (server.done, server.of) == (keyed.DISTINCT * 1, 20 * 13)
    assert client.value == client.amount * 13
    assert row.bytes_up.value == 13 * 8 * 8  # the last ciphertext is not full
    assert not row.bytes_up.measured
    assert row.client.memory is row.server.memory is row.holder.memory is None
    assert row.error == 0.0


def test_slow_key_holder_gets_a_smaller_sample() -> None:
    """Decryption takes 50 ms, and the budget is 20 ms."""
    row = keyed.measure(plain(0.0, 0, 0.05), Case(20, 100), budget=0.02)
    assert row.holder is not None
    assert row.client.seconds.measured
    assert (row.holder.seconds.done, row.holder.seconds.of) == (1, 13)
    assert (row.client.memory is None, row.holder.memory) == (False, None)
    assert row.holder_bytes_in == Figure(64, 1, 13)


def test_reserved_slots_are_counted() -> None:
    packed = replace(plain(), slots=10, reserved=1)
    assert [packed.ciphertexts(d) for d in (9, 10, 19, 20)] == [1, 2, 2, 3]
    row = keyed.measure(packed, Case(4, 100), budget=1e-12)
    assert (row.client.seconds.done, row.client.seconds.of) == (1, 11)
    assert row.bytes_up.amount == 9 * 8


def test_total_goes_to_every_trustee() -> None:
    row = keyed.measure(replace(plain(), trustees=3), Case(4, 8), budget=60.0)
    assert row.holder_bytes_in == Figure(3 * 64, 1, 1)


def threads_of(party: object) -> int:
    return threads()


def test_every_party_has_one_thread_and_packed_ciphertexts() -> None:
    way = he.threshold(*he.deal_key(512), 5)
    for make in (way.sender, way.aggregator, way.holder):
        with Role("party", make) as role:
            assert role.do(threads_of).result == 1
    for length in range(1, 70):
        assert way.ciphertexts(length) == he.packing(length, 5).plaintexts(512)


def test_first_vector_takes_longer_only_where_tables_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A party takes a quarter of a second to make, a first vector 7 s, and later ones 5 s."""
    encrypt = keyed._Parties.encrypt

    def timed(
        self: keyed._Parties, ciphertexts: int, clients: int
    ) -> tuple[list[bytes], float, float]:
        self.sender.setup_seconds = 0.25
        return encrypt(self, ciphertexts, clients)[0], 7.0, 5.0

    monkeypatch.setattr(keyed._Parties, "encrypt", timed)
    assert keyed.measure(plain(), Case(4, 10), budget=60.0).setup_seconds == 0
    row = keyed.measure(replace(plain(), tables=True), Case(4, 10), 60.0)
    assert (row.setup_seconds, row.client.seconds.value) == (2.25, 5.0)


def test_with_a_shared_key_every_client_decrypts() -> None:
    row = keyed.measure(plain(shared=True), Case(9, 10), budget=60.0)
    assert row.holder is row.holder_bytes_in is row.holder_bytes_out is None
    assert (row.bytes_up.value, row.bytes_down.value) == (80, 80)
    assert row.client.seconds.measured
    grown = keyed.measure(plain(0.0, MEGABYTES, shared=True), Case(9, 10), budget=60.0)
    assert grown.client.memory >= 0.9 * MEGABYTES
    sampled = keyed.measure(plain(shared=True), Case(9, 100), budget=1e-12)
    assert not sampled.client.seconds.measured
    assert sampled.client.memory is None


def test_wrong_sum_is_rejected() -> None:
    with pytest.raises(SecAggError, match=r"plain: .*0\.5"):
        keyed.measure(plain(0.5), Case(9, 10), budget=60.0)


def test_secret_sharing_bytes_are_those_of_the_formulas() -> None:
    """Secret sharing is measured whole and its bytes are the formulas."""
    case = Case(30, 50)
    phases: list[tuple[str, int, int]] = []
    row = ss.measure(case, lambda *step: phases.append(step))
    params = ss.parameters(case)
    assert (row.setting, row.error) == (
        "x25519, k = all others, t = 21, 3 drop out",
        0.0,
    )
    most = sum(phase.up for phase in client_traffic(params, client_id=29).values())
    assert most - 40 < row.bytes_up.value <= most  # ids and shares of the clients that are left
    assert row.client.seconds.measured
    assert row.server.seconds.measured
    assert row.holder is None
    assert phases[-1] == ("unmasking", 27, 27)
    assert row.clients_run == 30


def test_every_system_sums_the_same_vectors() -> None:
    case = Case(5, 100)
    vector = case.vector(3)
    integers, clipped = ENCODING.encode_integers(vector)
    assert not clipped
    assert np.array_equal(integers / ENCODING.scale, vector)
    assert np.array_equal(case.vector(3, 10), vector[:10])
    assert not np.array_equal(case.vector(4), vector)


def test_cases_out_of_range_are_rejected() -> None:
    for clients, length in ((2, 10), (100_001, 10), (10, 0), (10, 10**9)):
        with pytest.raises(ParameterError):
            Case(clients, length)


class Party:
    """Grows, fails, or dies."""

    def grow(self, size: int) -> int:
        block = bytearray(int(size))
        block[:: 1 << 12] = bytes(-(-len(block) // (1 << 12)))  # untouched pages take no memory
        return len(block)

    def work(self, seconds: float) -> None:
        start = time.process_time()
        while time.process_time() - start < seconds:
            pass

    def interrupt(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    def fail(self) -> None:
        raise ValueError("a reason")

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def process(self) -> int:
        return os.getpid()


def fails() -> Party:
    raise ParameterError("no party")


def test_role_has_a_process_and_its_own_memory() -> None:
    with Role("party", Party) as role, Role("other", Party) as other:
        assert role.do(Party.grow, MEGABYTES).result == MEGABYTES
        assert 0.9 * MEGABYTES <= role.memory < 2 * MEGABYTES
        assert other.memory < MEGABYTES // 4
        processes = {role.do(Party.process).result, other.do(Party.process).result}
        assert len(processes | {os.getpid()}) == 3


def test_earlier_peak_does_not_hide_a_later_one() -> None:
    Party().grow(4 * MEGABYTES)
    peak = Peak()
    with peak.watching():
        Party().grow(MEGABYTES)
    Party().grow(4 * MEGABYTES)  # not watched
    with peak.watching():
        pass
    assert 0.9 * MEGABYTES <= peak.grown() < 2 * MEGABYTES


def test_errors_of_a_role_contain_its_name() -> None:
    with Role("party", Party) as role:
        with pytest.raises(SecAggError, match="ValueError: a reason"):
            role.do(Party.fail)
        assert role.do(Party.grow, 1).result == 1  # the process continues
        with pytest.raises(SecAggError):
            role.do(Party.die)
    with pytest.raises(SecAggError, match="the party failed: no party"):
        Role("party", fails)


def test_role_ends_in_the_middle_of_its_work() -> None:
    """As after Ctrl-C, which the role itself ignores."""
    with Role("party", Party) as role:
        role.do(Party.interrupt)
        role._link.send((Party.work, (30.0,)))
    assert role._process.exitcode == -signal.SIGTERM


def test_families_and_grids_are_read() -> None:
    assert run.families("he, ss,he") == ("ss", "he")
    assert run.families("one-shot,ss") == ("ss", "one-shot")
    assert run.grid("10, 50,10", "7,7") == [Case(10, 7), Case(50, 7)]
