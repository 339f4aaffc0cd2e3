"""What the server holds once all inputs are in: the masked total, and what it has to ask for.

From here on only shares are missing. The active variant has this U3 signed first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from secagg.cohort import Cohort
from secagg.messages import ConsistencyRequest, UnmaskRequest, encode, pack_ids
from secagg.ring import Lanes

__all__ = ["Question", "Summed"]


class Question(NamedTuple):
    """Whose shares one client is asked for: those of U2 that it sees, ascending ids."""

    survivors: list[int]
    dropped: list[int]


@dataclass(frozen=True, eq=False)
class Summed:
    """The sum of the masked inputs of U3.

    Attributes
    ----------
    cohort : Cohort
    commitments : dict of id to bytes
        What every client of U2 committed itself to: its b_u.
    total : array in the ring's lanes
        Still under its masks.
    asked : dict of id to Question, ascending
        For every client of U3.
    """

    cohort: Cohort
    commitments: Mapping[int, bytes]
    total: Lanes
    asked: Mapping[int, Question]

    def to_sign(self, u: int) -> bytes:
        """Return what client u is to sign in round 3."""
        return encode(
            ConsistencyRequest(self.cohort.session, pack_ids(self.asked[u].survivors))
        )

    def to_unmask(self, u: int, signatures: Mapping[int, bytes] | None = None) -> bytes:
        """Return what client u is asked for in round 4, with the signatures of U4 by id."""
        survivors, dropped = self.asked[u]
        signed = signatures or {}
        return encode(
            UnmaskRequest(
                self.cohort.session,
                pack_ids(survivors),
                pack_ids(dropped),
                pack_ids(list(signed)),
                b"".join(signed.values()),
            )
        )
