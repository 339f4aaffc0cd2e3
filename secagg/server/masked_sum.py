"""Sum of all masked inputs, and the requests for the shares that unmask the sum.

The server makes sum and requests at the end of round 2. Round 3 sends the survivors to be
signed, in the active variant only. Round 4 asks for the shares.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from secagg.encoding import Lanes
from secagg.protocol.messages import ConsistencyRequest, UnmaskRequest, encode, pack_ids
from secagg.server.cohort import Cohort, made_once


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
    signatures: Mapping[int, bytes] = field(default_factory=dict)

    def to_sign(self) -> dict[int, bytes]:
        """Return the request of round 3 for each client: the survivors to sign."""
        session = self.cohort.session
        return made_once(
            {u: self.asked[u] for u in self.present},
            lambda asked: encode(ConsistencyRequest(session, pack_ids(asked.survivors))),
        )

    def to_unmask(self) -> dict[int, bytes]:
        """Return the request of round 4 for each client, with all signatures of U4."""
        signers, proof = pack_ids(list(self.signatures)), b"".join(self.signatures.values())
        return made_once(
            {u: self.asked[u] for u in self.present},
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
