"""Masked sum of U3 with the questions of round 4, which the later stages pass on."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from secagg.encoding import Lanes
from secagg.errors import Dispute, Verdict
from secagg.server.cohort import Cohort
from secagg.server.complaints import Complaints
from secagg.server.contributions import Contributions


class Question(NamedTuple):
    """Owners of the shares that a client is asked for: survivors and dropped, ascending ids."""

    survivors: list[int]
    dropped: list[int]


@dataclass(frozen=True, eq=False)
class Summed:
    """Sum of the masked inputs of U3.

    Attributes
    ----------
    cohort : Cohort
    commitments : dict of id to bytes
        Commitments to b_u of every client of U2.
    total : array in the ring's lanes
        The sum, still under its masks.
    asked : dict of id to Question, ascending
        Question to every client of U3; clients with the same holders share one object.
    contributions : Contributions
        Deposits of U3, in suite hybrid.
    complaints : Complaints or None
        Words of U3 on the shares, in the active variant.
    verdicts : tuple of Verdict
    present : collection of ids, ascending
        Receivers of the next request: the clients of U3 that see enough survivors. After round
        3 they are U4, the clients that signed.
    signatures : mapping of id to bytes, ascending
        Signatures of U4 over U3; empty before round 3 and in the semi-honest variant.
    """

    cohort: Cohort
    commitments: Mapping[int, bytes]
    total: Lanes
    asked: Mapping[int, Question]
    present: Collection[int]
    contributions: Contributions
    complaints: Complaints | None
    verdicts: tuple[Verdict, ...]
    signatures: Mapping[int, bytes] = field(default_factory=dict)

    @property
    def disputes(self) -> tuple[Dispute, ...]:
        """Complaints that convict nobody; none in the semi-honest variant."""
        return () if self.complaints is None else self.complaints.disputes()
