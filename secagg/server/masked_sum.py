"""What the server holds once all inputs are in: the masked total, and what it has to ask for.

From here on only shares are missing. The active variant has this U3 signed first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from secagg.encoding import Lanes
from secagg.protocol.messages import ConsistencyRequest, UnmaskRequest, encode, pack_ids
from secagg.server.cohort import Cohort

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
        For every client of U3; one object for all whose holders are the same.
    """

    cohort: Cohort
    commitments: Mapping[int, bytes]
    total: Lanes
    asked: Mapping[int, Question]

    def to_sign(self, clients: Collection[int]) -> dict[int, bytes]:
        """Return what each of the clients is to sign in round 3."""
        return self._to_each(
            clients,
            lambda asked: encode(
                ConsistencyRequest(self.cohort.session, pack_ids(asked.survivors))
            ),
        )

    def to_unmask(
        self, clients: Collection[int], signatures: Mapping[int, bytes] | None = None
    ) -> dict[int, bytes]:
        """Return what each is asked for in round 4, with the signatures of U4 by id."""
        signed = signatures or {}
        signers, proof = pack_ids(list(signed)), b"".join(signed.values())
        return self._to_each(
            clients,
            lambda asked: encode(
                UnmaskRequest(
                    self.cohort.session,
                    pack_ids(asked.survivors),
                    pack_ids(asked.dropped),
                    signers,
                    proof,
                )
            ),
        )

    def _to_each(
        self, clients: Collection[int], message: Callable[[Question], bytes]
    ) -> dict[int, bytes]:
        """Make the message of each question once: the clients that share it share that too."""
        made: dict[int, bytes] = {}
        for u in clients:
            name = id(self.asked[u])
            if name not in made:
                made[name] = message(self.asked[u])
        return {u: made[id(self.asked[u])] for u in clients}
