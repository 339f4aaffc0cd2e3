"""Masked sum of all inputs, and the questions to each client of U3.

Only shares are still missing. In the active variant the clients first sign this U3.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from secagg.encoding import Lanes
from secagg.protocol.messages import ConsistencyRequest, UnmaskRequest, encode, pack_ids
from secagg.server.cohort import Cohort

__all__ = ["Question", "Summed"]


class Question(NamedTuple):
    """Clients of U2 whose shares one client is asked for, ascending ids."""

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
        For every client of U3; one object for all with the same holders.
    present : collection of ids, ascending
        Receivers of the next request: the clients of U3 that see enough of U3, after round 3
        U4.
    signatures : mapping of id to bytes, ascending
        U4's signatures over U3; empty before and without round 3.
    """

    cohort: Cohort
    commitments: Mapping[int, bytes]
    total: Lanes
    asked: Mapping[int, Question]
    present: Collection[int]
    signatures: Mapping[int, bytes] = field(default_factory=dict)

    def to_sign(self) -> dict[int, bytes]:
        """Return the requests of round 3, by client."""
        return self._to_each(
            lambda asked: encode(
                ConsistencyRequest(self.cohort.session, pack_ids(asked.survivors))
            )
        )

    def to_unmask(self) -> dict[int, bytes]:
        """Return the requests of round 4, by client, with all signatures."""
        signers, proof = pack_ids(list(self.signatures)), b"".join(self.signatures.values())
        return self._to_each(
            lambda asked: encode(
                UnmaskRequest(
                    self.cohort.session,
                    pack_ids(asked.survivors),
                    pack_ids(asked.dropped),
                    signers,
                    proof,
                )
            )
        )

    def _to_each(self, message: Callable[[Question], bytes]) -> dict[int, bytes]:
        """Make the message of each question once, for all clients that share it."""
        made: dict[int, bytes] = {}
        for u in self.present:
            name = id(self.asked[u])
            if name not in made:
                made[name] = message(self.asked[u])
        return {u: made[id(self.asked[u])] for u in self.present}
