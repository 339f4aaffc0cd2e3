"""Property tests for applications of secagg: random rounds, and their invariants.

Needs Hypothesis: ``pip install hypothesis``. Test an aggregator, for example::

    @settings(deadline=None)
    @given(testing.rounds())
    def test_my_aggregator(round):
        testing.assert_exact_sum(round, my_aggregator)

`one_shot_rounds` and `assert_exact_one_shot_sum` do the same for `secagg.oneshot`.

See docs/testing.md for tests of transports, tests that messages hide inputs, and ``deadline``.
All of this is for tests only. Test clients accept rounds too small to hide an input, and test
entropy comes from a seed and is not secret.
"""

from __future__ import annotations

from secagg.errors import needing

with needing("secagg.testing", "hypothesis", "hypothesis"):
    from secagg.testing.oneshot import (
        OneShotRound,
        assert_exact_one_shot_sum,
        helper_keys,
        one_shot_params,
        one_shot_rounds,
    )
    from secagg.testing.strategies import (
        client_ids,
        dropouts,
        params,
        rounds,
        schedules,
        twin_rounds,
        vectors,
        weights,
    )
from secagg.testing.invariants import Record, assert_exact_sum, assert_inputs_hidden
from secagg.testing.network import FAULTS, Schedule, Transport, run_over
from secagg.testing.rounds import (
    Cohort,
    InsecureReplayedEntropy,
    Round,
    make_identity,
    toy_policy,
)

__all__ = [
    "FAULTS",
    "Cohort",
    "InsecureReplayedEntropy",
    "OneShotRound",
    "Record",
    "Round",
    "Schedule",
    "Transport",
    "assert_exact_one_shot_sum",
    "assert_exact_sum",
    "assert_inputs_hidden",
    "client_ids",
    "dropouts",
    "helper_keys",
    "make_identity",
    "one_shot_params",
    "one_shot_rounds",
    "params",
    "rounds",
    "run_over",
    "schedules",
    "toy_policy",
    "twin_rounds",
    "vectors",
    "weights",
]
