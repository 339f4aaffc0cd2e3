"""The one place where fedmf hands the users' vectors over to be summed.

Whoever trains passes an `Aggregation`: `PlainSum` adds the clients' integers in the clear,
`SecAggSum` runs the secure-aggregation protocol on them, and `PaillierSum` adds them under
homomorphic encryption. The integers are the same, bit for bit, and so are the users left out.
`FloatSum` is what fixed point is compared with, `NoisySum` clips and adds noise, and `MixedSum`
is the mixed mode of the FedMMF paper, which protects less than it seems to.
"""

from __future__ import annotations

from fedmf.sums.float_sum import FloatSum
from fedmf.sums.integer_sum import PHASES, Aggregation, Phase, RoundAborted
from fedmf.sums.mixed_sum import MixedSum
from fedmf.sums.noisy_sum import NoisySum
from fedmf.sums.paillier_sum import PaillierSum
from fedmf.sums.plain_sum import PlainSum
from fedmf.sums.secagg_sum import SecAggSum
from fedmf.sums.trust import WARNINGS, Trust
from fedmf.sums.vectors import Aggregate

__all__ = [
    "PHASES",
    "WARNINGS",
    "Aggregate",
    "Aggregation",
    "FloatSum",
    "MixedSum",
    "NoisySum",
    "PaillierSum",
    "Phase",
    "PlainSum",
    "RoundAborted",
    "SecAggSum",
    "Trust",
]
