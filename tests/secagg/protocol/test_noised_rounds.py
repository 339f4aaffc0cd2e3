"""Noise that clients add: its size for the worst survivors, lists below m, and the account."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import isqrt

import numpy as np
import pytest

from adversary import LyingServer
from harness import Cohort, altered, make_params, make_vector, rejects
from independent_primitives import hedged, hedging_secret, u64le
from secagg import (
    Bounded,
    BudgetSpent,
    Client,
    ClientPolicy,
    FixedPoint,
    Integers,
    JournalError,
    Noise,
    ParameterError,
    Phase,
    RoundParams,
    TooFewSurvivors,
    simulate_round,
)
from secagg.client.inputs import Outcome, send_input
from secagg.encoding import Entropy, Lanes, Ring, Vector
from secagg.protocol import NEXT
from secagg.protocol.messages import (
    ConsistencyRequest,
    Roster,
    Shares,
    UnmaskRequest,
    pack_ids,
)
from secagg.protocol.noise import Share
from secagg.server.result import decode_sum
from slots import Slot

BOTH = pytest.mark.parametrize("security", ["semi-honest", "active"])
NOISE = Noise(300, colluders=1)
M = 6
NOISED = {"noise": NOISE, "min_survivors": M}
"""Changes to parameters of seven clients: t is 4, or 5 if the server may lie."""


# ---- size of the noise


def test_check30_worst_survivors_without_colluders_have_the_variance() -> None:
    """10,000 patterns of drop-outs and colluders, in integers: no server gets less noise."""
    draw = np.random.default_rng(1)
    for _ in range(100):
        n = int(draw.integers(3, 200))
        m = int(draw.integers(n // 2 + 1, n + 1))
        c = int(draw.integers(0, max(m, 3) - 1))
        noise = Noise(Fraction(int(draw.integers(10**5, 10**9)), 256), colluders=c)
        how = {"encoding": Integers(1), "modulus_bits": 60}
        params = make_params(n, noise=noise, min_survivors=m, **how)
        assert params.share is not None
        for _ in range(100):
            survivors = draw.permutation(n)[: int(draw.integers(params.min_survivors, n + 1))]
            colluders = draw.permutation(n)[:c]
            honest = len(set(survivors.tolist()) - set(colluders.tolist()))
            assert honest * params.share.scaled**2 >= noise.scaled**2
        # and not more than needed: the next smaller share is too small
        fewest = params.min_survivors - c
        assert fewest * (params.share.scaled - 1) ** 2 < noise.scaled**2


@BOTH
@pytest.mark.parametrize(
    "changes",
    [
        {"encoding": Bounded(1.0, 1000)},
        {"encoding": Bounded(1.0, 1000), "modulus": 1_000_003, "count_clipped": True},
        {"encoding": FixedPoint(8.0, 8, rounding="nearest")},
        {"encoding": Integers(9), "modulus": 1_000_003},
    ],
)
def test_check30_sum_has_the_shares_of_its_survivors(security: str, changes: dict) -> None:
    """The deviation of what is added, with a client that drops out after it shared its keys."""
    params = make_params(7, length=8000, security=security, **NOISED, **changes)
    bounded = isinstance(params.encoding, Bounded)
    scale = 1 / 200 if bounded else 1.0  # below the norm
    vectors = {u: make_vector(params, u) for u in range(7)}
    if bounded:
        vectors = {u: vector * scale for u, vector in vectors.items()}
    policy = ClientPolicy(colluders=1)
    result = simulate_round(vectors, params, policy=policy, dropouts={3: "masked_input"})
    step = {Bounded: 1 / 1000, FixedPoint: 1 / 256, Integers: 1}[type(params.encoding)]
    noise = (result.sum - sum(vectors[u] for u in result.survivors)) / step
    assert params.share is not None
    expected = params.share.scaled / 256 * np.sqrt(len(result.survivors))
    assert abs(noise.std() / expected - 1) < 0.05  # six deviations of the estimate
    assert abs(noise.mean()) < 6 * expected / np.sqrt(params.length)
    assert (result.clipped_vectors is None) == (not (bounded and params.count_clipped))


def test_check30_weights_and_counts_have_noise_and_no_attempt_repeats_it() -> None:
    """Three attempts with equal inputs and equal entropy, but names of their own."""
    params = make_params(5, encoding=Integers(1), max_weight=3, count_clipped=True, noise=NOISE)
    sums = []
    for name in (b"1", b"2", b"3"):
        cohort = Cohort(replace(params, session=name))
        cohort.advance(4)
        sums.append(cohort.server.result())
    for values in (
        [result.weight for result in sums],
        [result.clipped for result in sums],
        [tuple(result.integers) for result in sums],
    ):
        assert len(set(values)) == 3


def test_rotated_sum_counts_clipped_vectors() -> None:
    params = make_params(5, encoding=Bounded(1.0, 1 << 20), count_clipped=True, modulus_bits=48)
    vectors = [np.full(4, 9.0 if u < 3 else 0.1) for u in range(5)]
    result = simulate_round(vectors, params)
    assert result.clipped_vectors == pytest.approx(3, abs=1e-3)
    assert result.sum == pytest.approx(3 * 0.5 + 2 * 0.1, abs=1e-4)
    assert (result.clipped, result.weight) == (3, None)


@pytest.mark.parametrize("encoding", [Integers(2), FixedPoint(2.0, 0)])
def test_check42_counts_beyond_the_noise_are_rejected(encoding: Integers | FixedPoint) -> None:
    """A count that noise made negative is read, and numbers that noise cannot make are not."""
    params = make_params(4, 3, length=2, encoding=encoding, count_clipped=True, noise=Noise(8))
    bound = params.noise_bound
    for count, is_right in (
        (-bound, True),
        (8 + bound, True),
        (-bound - 1, False),
        (8 + bound + 1, False),
    ):
        total = np.array([0, 0, count % params.ring.modulus], params.ring.dtype)
        if is_right:
            assert decode_sum(total, (0, 1, 2, 3), (), params).clipped == count
        else:
            with pytest.raises(Exception, match="clipped"):
                decode_sum(total, (0, 1, 2, 3), (), params)


@BOTH
def test_check45_key_of_the_noise_is_hedged(
    security: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From entropy that everybody knows an identity still makes a key that nobody knows."""
    drawn, adder = list[bytes](), Share.adder
    monkeypatch.setattr(
        Share, "adder", lambda self, key, ring: drawn.append(key) or adder(self, key, ring)
    )
    cohort = Cohort(make_params(5, security=security, noise=NOISE))
    cohort.advance(2)
    client = cohort.clients[2]
    client._entropy = lambda size: b"Z" * size
    client.masked_input(cohort.inbox[2], cohort.vectors[2])
    identity = client._identity and client._identity._private.private_bytes_raw()
    statement = b"secagg/2 hedged ", b"noise", client._state.session, u64le(2)
    assert drawn == [hedged(hedging_secret(identity), b"Z" * 32, *statement)(16)]


# ---- room


def room_of(params: RoundParams) -> int:
    """The least R, from the formulas of docs/protocol.md, 3.1."""
    n, p = params.n_clients, params.share.scaled if params.share else 0
    if params.rotated is not None:
        size, square = params.rotated.elements, params.rotated.squared_norm
        logarithm = size.bit_length() - 1
        spread = Fraction(n * n * square, size) + n * Fraction(p, 256) ** 2 + Fraction(n, 4)
        wide = 4 * Fraction(13863, 10000) * (11 + logarithm) * spread
        return next(r for r in range(isqrt(int(wide)), 1 << 60) if (r - 1) ** 2 >= wide)
    square, start = 100 * n * p * p, 10 * isqrt(n) * p // 256
    bound = next(v for v in range(start, 1 << 60) if (256 * v) ** 2 >= square)
    largest = n * params.encoding.max_encoded
    values = (2 if params.encoding.signed else 1) * largest
    counts = n * params.length if params.count_clipped else 0
    return max(values, counts) + 2 * bound + 1


@pytest.mark.parametrize("noise", [None, Noise(100), Noise(2000.5, colluders=2)])
@pytest.mark.parametrize(
    "encoding", [Integers(9), FixedPoint(2.0, 4), Bounded(1.0, 50), Bounded(3.0, 4000)]
)
@pytest.mark.parametrize("counts", [False, True])
def test_check14_sums_with_noise_have_room(
    noise: Noise | None, encoding: object, counts: bool
) -> None:
    how = {"encoding": encoding, "noise": noise, "count_clipped": counts}
    made = make_params(9, length=100, modulus_bits=62, **how)
    least = room_of(made)
    assert replace(made, modulus_bits=None, modulus=least).ring.modulus == least
    with pytest.raises(ParameterError, match="headroom"):
        replace(made, modulus_bits=None, modulus=least - 1)
    suggested = RoundParams.suggest(9, 100, threshold=made.threshold, **how)
    assert suggested.ring.bits == (least - 1).bit_length()


def test_parameters_with_noise_that_no_round_has() -> None:
    for changes in (
        {"noise": Noise(300, colluders=3)},  # two shares of others must be left of four
        {"noise": Noise(300, colluders=5), "min_survivors": 6},
        {"noise": Noise(1)},
        {"noise": 300},
        {"min_survivors": 8},
        {"min_survivors": "6"},
        {"min_survivors": 6.5},
        {"encoding": Bounded(1.0, 8), "max_weight": 3},
    ):
        with pytest.raises(ParameterError):
            make_params(7, **changes)


def test_min_survivors_follow_the_threshold_unless_they_are_given() -> None:
    params, given = make_params(9, 5), make_params(9, 5, min_survivors=7)
    assert (params.min_survivors, given.min_survivors, given.least) == (5, 7, 5)
    assert replace(params, threshold=8).min_survivors == 8
    assert replace(params, n_clients=4, threshold=3) == make_params(4, 3)
    assert replace(given, threshold=8).min_survivors == 8
    assert replace(given, threshold=6).min_survivors == 7
    assert make_params(9, 5, min_survivors=3) == params
    assert RoundParams.from_bytes(given.to_bytes(), given.encoding) == given != params


# ---- a server that lies


def named(kind: type, *fields: str) -> Callable[[int, bytes], bytes]:
    """The lie that a list has 5 clients, below m and at least t."""
    return lambda _, data: altered(data, kind, **dict.fromkeys(fields, pack_ids(range(5))))


@BOTH
@pytest.mark.parametrize(
    ("phase", "lie"),
    [
        ("consistency_check", named(ConsistencyRequest, "survivors")),
        (
            "unmasking",
            lambda _, data: altered(
                data, UnmaskRequest, survivors=pack_ids(range(5)), dropped=pack_ids([5, 6])
            ),
        ),
    ],
)
def test_check30_survivors_below_m_are_rejected(security: str, phase: str, lie: object) -> None:
    """A dropped survivor would take its share of the noise along."""
    if phase not in NEXT[security]:
        return
    server = LyingServer(security, colluders=[0], **NOISED)
    server.play(phase)
    server.send(phase, lie, whom=range(5))
    assert server.checks() == dict.fromkeys(range(5), "size")
    assert server.learned() == []


@BOTH
@pytest.mark.parametrize(("phases", "kind"), [(1, Roster), (2, Shares)])
def test_check30_cohorts_below_m_are_rejected(security: str, phases: int, kind: type) -> None:
    """Rosters of five clients, and shares of five: an honest server of other parameters."""
    low = make_params(7, security=security, session=b"r", noise=NOISE)
    cohort = Cohort(low, ids=range(6) if kind is Shares else range(5))
    cohort.advance(phases, without=[5])
    high = replace(low, min_survivors=M)
    for u in range(5):
        client = cohort.clients[u]
        client.params = high  # the digest of the parameters would be another, too
        data = cohort.inbox[u]
        if kind is Roster:
            data = altered(data, Roster, parameters=high.to_bytes())
        rejects(client, data, "size")


@BOTH
@pytest.mark.parametrize(
    "changes", [{"min_survivors": None}, {"noise": None}, {"noise": Noise(299, colluders=1)}]
)
def test_check30_other_noise_than_agreed_is_rejected(security: str, changes: dict) -> None:
    """The server lowers m or σ, or leaves the noise out."""
    server = LyingServer(security, **NOISED)
    server.play("share_keys")
    other = replace(server.cohort.params, **changes).to_bytes()
    server.send("share_keys", lambda _, data: altered(data, Roster, parameters=other))
    assert set(server.checks().values()) == {"parameters"}
    assert server.learned() == []


@BOTH
def test_check19_below_m_nothing_is_unmasked(security: str) -> None:
    """The server ends at U1, U2 and U3 below m; fewer signers than m are enough."""
    params = make_params(7, security=security, **NOISED)
    for phase, name in enumerate(NEXT[security]):
        cohort = Cohort(params)
        cohort.advance(phase)
        for u, data in cohort.step(without=[0, 1]).items():
            cohort.server.receive(u, data)
        if phase > 2:
            for u, data in cohort.server.close_round().items():
                assert cohort.answer(u, data)
            continue
        with pytest.raises(TooFewSurvivors) as caught:
            cohort.server.close_round()
        found = caught.value.phase, caught.value.survivors, caught.value.needed
        assert found == (name, 5, M)


def test_check19_on_a_graph_the_server_alone_counts_m() -> None:
    """Clients on a graph see fewer clients than m, and accept that."""
    params = make_params(9, 3, neighbours=4, noise=NOISE, min_survivors=8)
    cohort = Cohort(params)
    cohort.advance(4)
    assert len(cohort.server.result().survivors) == 9
    cohort = Cohort(params)
    cohort.advance(2)
    for u, data in cohort.step(without=[0, 1]).items():
        cohort.server.receive(u, data)
    with pytest.raises(TooFewSurvivors) as caught:
        cohort.server.close_round()
    assert (caught.value.survivors, caught.value.needed) == (7, 8)


# ---- the account


class Account:
    """A `Spending` with room for `room` sums, which keeps what it sees."""

    def __init__(self, room: int = 1, error: BaseException | None = None) -> None:
        self.room, self.error, self.seen = room, error, list[Phase]()
        self.client: Client | None = None

    def check(self, params: RoundParams) -> None:
        if not self.room:
            raise BudgetSpent("no room")

    def spend(self, params: RoundParams) -> None:
        assert self.client is not None
        assert params.noise is not None
        self.seen.append(self.client.phase)
        if self.error is not None:
            raise self.error
        self.check(params)
        self.room -= 1


def accounting(account: Account, **changes: object) -> tuple[Cohort, Client]:
    """A cohort before the masked inputs; client 2 has the account."""
    cohort = Cohort(make_params(5, **({"noise": NOISE} | changes)))
    client = Client(2, cohort.params, policy=cohort.clients[2].policy, spending=account)
    account.client = cohort.clients[2] = client
    cohort.advance(2)
    return cohort, client


def test_privacy_is_spent_once_and_before_the_input_leaves() -> None:
    """After all that can fail, so that an invalid vector spends as much as any other."""
    account = Account()
    cohort, client = accounting(account)
    data, bad = cohort.inbox[2], np.array([0.0, np.nan, 0.0, 0.0])
    with pytest.raises(ParameterError):
        client.masked_input(data, bad)
    assert account.seen == []
    _, sent = send_input(lambda x, *_: client.answer(data, x), Outcome(bad), client.params)
    assert isinstance(sent.error, ParameterError)
    assert (account.seen, account.room) == ([Phase.MASKED_INPUT], 0)
    assert client.phase is Phase.UNMASKING


class Unbounded(Integers):
    """Encoding of an application that clips nothing, although it declares a bound."""

    def encode(
        self, vector: Vector, ring: Ring, weight: int = 1, entropy: Entropy = bytes
    ) -> tuple[Lanes, int]:
        return ring.residues(weight * vector.astype(np.int64)), 0  # type: ignore[return-value]

    def canonical(self) -> bytes:
        return b"unbounded"


@pytest.mark.parametrize("wrapped", [{"modulus_bits": 40}, {"modulus": 999_983}], ids=str)
@pytest.mark.parametrize("element", [7, -7, 8, -8])
def test_element_beyond_the_bound_of_the_noise_sends_zeros(
    wrapped: dict[str, int], element: int
) -> None:
    """The noise is planned for elements up to ±7, with a weight up to 3 times as much."""
    account = Account()
    changes = {"encoding": Unbounded(7), "max_weight": 3, **wrapped}
    cohort, client = accounting(account, **changes)
    vector = np.array([0, element, 0, 1])

    def send(x: np.ndarray, w: int | None, *_: object) -> bytes:
        return client.answer(cohort.inbox[2], x, w)

    _, sent = send_input(send, Outcome(vector, 3), client.params)
    assert isinstance(sent.error, ParameterError) == (abs(element) > 7)
    assert account.room == 0


@pytest.mark.parametrize("error", [JournalError("full disk"), KeyboardInterrupt()])
def test_nothing_leaves_if_the_account_fails(error: BaseException) -> None:
    """The client is unchanged; a death between spending and sending leaves the sum spent."""
    account = Account(error=error)
    cohort, client = accounting(account)
    with pytest.raises(type(error)):
        client.masked_input(cohort.inbox[2], cohort.vectors[2])
    assert client.phase is Phase.MASKED_INPUT
    account.error = None
    assert client.masked_input(cohort.inbox[2], cohort.vectors[2])
    assert account.room == 0


def test_spent_account_declines_whatever_the_vector() -> None:
    """Before the keys; and where another sum was quicker, before the masked input."""
    with pytest.raises(BudgetSpent):
        accounting(Account(room=0))
    account = Account()
    cohort, client = accounting(account)
    account.room = 0
    for vector in (np.zeros(4), np.full(4, np.inf)):
        calls = list[object]()

        def send(x: np.ndarray, *_: object, calls: list[object] = calls) -> bytes:
            calls.append(x)
            return client.answer(cohort.inbox[2], x)

        with pytest.raises(BudgetSpent):
            send_input(send, Outcome(vector), client.params)
    assert client.phase is Phase.MASKED_INPUT


def test_account_has_no_room_for_a_sum_without_noise() -> None:
    """Neither before the keys, nor if the client was suspended without its account."""
    with pytest.raises(BudgetSpent):
        accounting(Account(), noise=None)
    cohort, slot, account = Cohort(make_params(5)), Slot(), Account()
    cohort.advance(2)
    state = cohort.clients[2].suspend(slot)
    client = account.client = Client(2, cohort.params, spending=account)
    client.restore(state, slot)
    with pytest.raises(BudgetSpent):
        client.masked_input(cohort.inbox[2], cohort.vectors[2])
    assert account.room == 1


def test_restored_client_ends_a_sum_that_took_the_last_of_its_account() -> None:
    account, slot = Account(), Slot()
    cohort, client = accounting(account)
    cohort.deliver(cohort.step())
    state = client.suspend(slot)
    again = Client(2, cohort.params, policy=client.policy, spending=account)
    again.restore(state, slot)
    assert account.room == 0
    assert again.unmask(cohort.inbox[2])
