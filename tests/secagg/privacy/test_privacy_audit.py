"""Audits: lower bounds of ε from membership tests on sums of real clients and a real server.

The adversary knows all but the victim's vector, v or zeros, and the noise of a colluder. The
test with the likelihood ratio of the claimed law is optimal (Neyman and Pearson), and its
threshold is fixed before a sum is seen. Clopper–Pearson bounds at 97.5 % for each side make
ln((TPR − δ) / FPR) a lower bound of ε.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

from secagg import Bounded, BudgetSpent, Client, Noise, RoundParams, Server
from secagg.client import client as clients
from secagg.privacy import Budget, Loss, PrivacyLedger
from secagg.protocol import NEXT, Phase
from secagg.protocol.noise import Share

pytest.importorskip("dp_accounting")
stats = pytest.importorskip("scipy.stats")

DELTA, SIZE = 1e-6, 16
BOUNDED = Bounded(1.0, 4000)
VECTORS = np.zeros((2, 3, SIZE))  # without and with the victim's vector, a row for each client
VECTORS[1, 0, 5] = 1.0
PARAMS = RoundParams(
    n_clients=4,
    threshold=3,
    min_survivors=3,
    length=SIZE,
    encoding=BOUNDED,
    modulus_bits=32,
    session=b"audit",
)


@dataclass
class Audited:
    """Rounds of three clients of four, the fewest allowed: victim, another, and a colluder."""

    rng: np.random.Generator
    keys: list[bytes]

    def round(self, params: RoundParams, member: int, ledger: PrivacyLedger | None) -> float:
        """Return the logarithm of the likelihood ratio of a sum, by the claimed law."""
        self.keys.clear()
        server, entropy = Server(params, entropy=self.rng.bytes), self.rng.bytes
        party = [Client(u, params, spending=ledger, entropy=entropy) for u in range(1)]
        party += [Client(u, params, entropy=entropy) for u in (1, 2)]
        inbox = dict.fromkeys(range(3), b"")
        for phase in NEXT["semi-honest"]:
            for u, client in enumerate(party):
                vector = VECTORS[member, u] if phase is Phase.MASKED_INPUT else None
                server.receive(u, client.answer(inbox[u], vector))
            inbox = server.close_round()
        total = server.result().integers.astype(np.float64)
        share = cast(Share, params.share)
        if len(self.keys) == 3:  # the colluder is the last to draw noise
            total -= np.concatenate([*share.blocks(self.keys[2], 0, SIZE)])
        rotated = cast(Any, params.rotated)
        x = rotated.integers(VECTORS[1, 0], self.rng.bytes)[0].astype(np.float64)
        assert (x @ x) == BOUNDED.steps**2  # whole steps, so rounding changes nothing
        variance = 2 * (share.scaled / 256) ** 2
        return float(total @ x - x @ x / 2) / variance


@pytest.fixture
def audited(monkeypatch: pytest.MonkeyPatch) -> Audited:
    keys = list[bytes]()
    adder = Share.adder

    def noting(share: Share, key: bytes, ring: Any) -> Any:
        keys.append(key)
        return adder(share, key, ring)

    monkeypatch.setattr(Share, "adder", noting)
    return Audited(np.random.default_rng(38), keys)


def noised(part: Fraction) -> RoundParams:
    """Return parameters whose sum spends `part` as μ²."""
    square = cast(Any, PARAMS.rotated).squared_norm
    variance = square / part + Fraction(1, 12)
    sigma = Fraction(math.isqrt(math.ceil(variance * 256**2)) + 1, 256)
    return replace(PARAMS, noise=Noise(sigma, colluders=1))


def lower_bound(inside: float, outside: float, sums: int) -> float:
    """Return the bound for numbers of sums beyond the threshold, of `sums` a side."""
    least = stats.beta.ppf(0.025, inside, sums - inside + 1) if inside else 0.0
    most = stats.beta.ppf(0.975, outside + 1, sums - outside) if outside < sums else 1.0
    return math.log((least - DELTA) / most) if least > DELTA else 0.0


def threshold(squares: float, sums: int) -> float:
    """Return the threshold of the ratio with the best bound to expect under N(±μ²/2, μ²).

    Exact sums have the ratios ±μ²/2, so the threshold lies between.
    """
    law = stats.norm(0, math.sqrt(squares))

    def expected(ratio: float) -> float:
        rates = (law.sf(ratio - half) for half in (squares / 2, -squares / 2))
        return lower_bound(*(sums * rate for rate in rates), sums)

    return float(max(np.linspace(-0.49, 0.49, 99) * squares, key=expected))


def audit(ratios: np.ndarray, at: float) -> float:
    """Return the lower bound of ε for the ratios without and with the vector."""
    outside, inside = (int((side > at).sum()) for side in ratios)
    return lower_bound(inside, outside, ratios.shape[1])


FULL = [
    pytest.param(*case, marks=pytest.mark.slow) for case in ((1, 2000), (2, 2000), (8, 20000))
]


@pytest.mark.parametrize(("epsilon", "sums"), [(0.5, 20), *FULL])
def test_membership_tests_stay_below_the_claim_and_exceed_it_without_noise(
    audited: Audited, monkeypatch: pytest.MonkeyPatch, epsilon: float, sums: int
) -> None:
    params = noised(Budget(epsilon, DELTA).squares)
    loss = Loss.of(params)
    claim = loss.epsilon(DELTA)
    assert 0.99 * epsilon < claim <= epsilon
    at = threshold(float(loss.squares), sums)

    def ratios() -> np.ndarray:
        sides = [
            [audited.round(params, member, None) for _ in range(sums)] for member in (0, 1)
        ]
        return np.array(sides)

    with_noise = audit(ratios(), at)
    monkeypatch.setattr(Share, "adder", lambda share, key, ring: lambda values, start: None)
    audited.keys.clear()
    without = audit(ratios(), at)
    print(f"ε = {claim:.4f}, {sums} sums a side: {with_noise:.3f}, without noise {without:.3f}")
    assert with_noise <= claim < without


PARTS = (
    ((Fraction(9, 10), Fraction(10_000)), 0.5, 12),
    pytest.param(
        (*(Fraction(k, 10) for k in (1, 2, 3)), Fraction(399, 1000), Fraction(10_000)),
        1,
        2000,
        marks=pytest.mark.slow,
    ),
)


@pytest.mark.parametrize(("parts", "epsilon", "victims"), PARTS)
def test_ledger_ends_the_sums_of_a_server_that_lowers_the_noise(
    audited: Audited,
    monkeypatch: pytest.MonkeyPatch,
    parts: tuple[Fraction, ...],
    epsilon: float,
    victims: int,
) -> None:
    """The parts of the budget add up to less than 1 but for the last sum, nearly exact."""
    budget = Budget(epsilon, DELTA)
    asked = [noised(part * budget.squares) for part in parts]
    at = threshold(float(budget.squares), victims)
    answered = list[int]()

    def rounds(member: int) -> Iterator[float]:
        ledger = PrivacyLedger(None, budget)
        for params in asked:
            try:
                yield audited.round(params, member, ledger)
            except BudgetSpent:
                return
            answered.append(ledger.sums)

    def ratios() -> np.ndarray:
        return np.array([[sum(rounds(member)) for _ in range(victims)] for member in (0, 1)])

    kept = audit(ratios(), at)
    assert max(answered) == len(parts) - 1
    monkeypatch.setattr(clients, "check_allowed", lambda spending, params: None)
    monkeypatch.setattr(clients, "spend", lambda spending, params: None)
    open_ended = audit(ratios(), at)
    print(f"ε = {epsilon}, {victims} victims: {kept:.3f}, without a ledger {open_ended:.3f}")
    assert kept <= epsilon < open_ended
