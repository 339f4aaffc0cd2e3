"""The one place where fedmf hands the users' vectors over to be summed.

Whoever trains passes an `Aggregation`: `PlainSum` adds the clients' integers in the clear,
`SecAggSum` runs the secure-aggregation protocol on them, and `PaillierSum` adds them under
homomorphic encryption. The integers are the same, bit for bit, and so are the users left out.
`FloatSum` is what fixed point is compared with.
"""

from __future__ import annotations

from fedmf.float_sum import FloatSum
from fedmf.integer_sum import PHASES, Aggregation, Phase, RoundAborted
from fedmf.paillier_sum import PaillierSum
from fedmf.plain_sum import PlainSum
from fedmf.secagg_sum import SecAggSum
from fedmf.trust import WARNINGS, Trust
from fedmf.vectors import Aggregate

__all__ = [
    "PHASES",
    "WARNINGS",
    "Aggregate",
    "Aggregation",
    "FloatSum",
    "PaillierSum",
    "Phase",
    "PlainSum",
    "RoundAborted",
    "SecAggSum",
    "Trust",
]
