"""Aggregations: sums of the users' vectors, in the clear or in private.

A trainer takes an `Aggregation`. `PlainSum` adds the clients' integers in the clear.
`SecAggSum` adds the integers by the secure-aggregation protocol. `OneShotSum` takes one message
from each client. `PaillierSum` adds the integers under homomorphic encryption. All four give
the same integers, bit for bit, and leave out the same users. `FloatSum` adds floats for
comparison. The estimators with an ε, such as `fedmf.DPEase`, add noise for differential privacy
to any sum of integers.
"""

from __future__ import annotations

from fedmf.aggregate.aggregation import PHASES, Aggregation, Phase, RoundAborted
from fedmf.aggregate.paillier import PaillierSum
from fedmf.aggregate.plain import FloatSum, PlainSum
from fedmf.aggregate.protocols import OneShotSum, SecAggSum
from fedmf.aggregate.trust import WARNINGS, Trust
from fedmf.aggregate.vectors import Aggregate

__all__ = [
    "PHASES",
    "WARNINGS",
    "Aggregate",
    "Aggregation",
    "FloatSum",
    "OneShotSum",
    "PaillierSum",
    "Phase",
    "PlainSum",
    "RoundAborted",
    "SecAggSum",
    "Trust",
]
