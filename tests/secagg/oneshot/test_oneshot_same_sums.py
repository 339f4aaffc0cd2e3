"""A one-shot sum, the plain sum, SecAgg and Paillier give the same integers, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given

from effort import examples
from fedmf.aggregate import PlainSum
from fedmf.aggregate.vectors import Rows, Vectors
from oneshot_parties import run_one_shot
from paillier_keys import keypair
from secagg import FixedPoint, ParameterError, simulate_round, testing
from secagg.oneshot import OneShotResult
from secagg.paillier import Packing


def plain_sum(round: testing.OneShotRound) -> list[int] | None:
    """Return `PlainSum`'s integers under any encoding; None for weights, which it lacks."""
    encoding, d = round.params.encoding, round.params.length
    if round.weights is not None:
        return None
    dtype = np.float64 if isinstance(encoding, FixedPoint) else np.int64

    def table(user: int) -> Rows:
        values = round.vectors[user].astype(dtype).reshape(d, 1)
        return Rows(np.arange(d, dtype=np.int32), values, d)

    vectors = Vectors(round.vectors, table, (d, 1))
    return PlainSum()._add(vectors, {}, b"", encoding).integers.tolist()


def paillier_sum(round: testing.OneShotRound) -> list[int] | None:
    """Return the decrypted integers; None where a sum does not fit a slot."""
    key, params = keypair(), round.params
    try:
        packing = Packing(
            encoding=params.encoding,
            length=params.length,
            summands=len(round.vectors),
            max_weight=params.max_weight,
        )
    except ParameterError:  # sums beyond 2^62
        return None
    vectors = (
        key.encrypt_vector(vector, packing, round.plain.weight(u))
        for u, vector in round.vectors.items()
    )
    return key.decrypt_vector(sum(vectors)).integers.tolist()


def check_same_sums(round: testing.OneShotRound) -> None:
    results: list[OneShotResult] = []

    def run(round: testing.OneShotRound) -> OneShotResult:
        results.append(run_one_shot(round))
        return results[0]

    testing.assert_exact_one_shot_sum(round, run)
    if not results:
        event("too few clients")
        return
    expected = results[0].integers.tolist()
    found = {
        "plain": plain_sum(round),
        "secagg": simulate_round(
            round.vectors, round.plain.params, weights=round.weights, policy=round.plain.policy
        ).integers.tolist(),
        "paillier": paillier_sum(round),
    }
    for name, integers in found.items():
        event(f"{name} {'compared' if integers is not None else 'cannot'}")
        assert integers is None or integers == expected
    event(f"{round.params.threshold} of {len(round.params.helpers)}, {round.params.security}")


@examples(150)
@given(testing.one_shot_rounds())
@pytest.mark.filterwarnings("ignore::secagg.ClippingWarning")
@pytest.mark.filterwarnings("ignore::secagg.PrecisionWarning")
def test_all_sums_are_the_same(round: testing.OneShotRound) -> None:
    check_same_sums(round)
