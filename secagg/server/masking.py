"""Round 2 of the server: send the sealed shares and add up the masked inputs.

Masked inputs are added as they arrive, so memory does not grow with the number of clients times
elements.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import numpy as np

from secagg import _fast
from secagg.errors import Dispute, RemoteProtocolError, TooFewSurvivors
from secagg.protocol import Phase
from secagg.protocol.keys import U8
from secagg.protocol.messages import MaskedInput, Shares, encode, pack_ids
from secagg.server.cohort import made_once
from secagg.server.complaints import Complaints
from secagg.server.contributions import Contributions
from secagg.server.sharing import KeysShared
from secagg.server.stages import SessionStage
from secagg.server.summed import Question, Summed

_NOBODY = np.empty(0, np.uint64)
_NOTHING = (b"",) * 5
"""Signed hashes in Shares of a semi-honest round."""


class Masking(SessionStage):
    """Round 2: send sealed shares and add up masked inputs; `close` returns their sum."""

    phase = Phase.MASKED_INPUT

    def __init__(self, shared: KeysShared) -> None:
        cohort, u2 = shared.cohort, shared.commitments
        senders = {u: [v for v in cohort.seen_by(u, u2) if v != u] for u in shared.present}
        super().__init__(cohort, _inboxes(shared, senders))
        self._commitments = u2
        self._contributions = Contributions(cohort.session, shared.checks, senders)
        self._complaints = None
        if shared.dealings is not None:
            shared.dealings.forget_paths()
            self._complaints = Complaints(cohort, shared.dealings, u2)
        self._total = self.params.ring.zeros(self.params.elements)
        # one array, in which each input is unpacked before its addition
        self._values = np.empty_like(self._total)
        self._u3: set[int] = set()

    def take(self, u: int, data: bytes) -> None:
        """Validate a masked input and add the input to the total; only the total is stored."""
        message = self.read(u, data, MaskedInput)
        deposits = self._contributions.read(u, message.deposits)
        if deposits is None:
            self.reject(u, "length", "expected a deposit for each sender of shares, if hybrid")
        word = self._word(u, message)
        unmasked = _NOBODY
        if self._complaints is not None and word is not None:
            unmasked = self._complaints.unmasked(word)
            whole = self._contributions.are_disclosed(u, unmasked, message.disclosed)
            why = f"expected the secrets of the pairs of {unmasked.size} complaints of kind 2"
            self.require(whole, u, "disclosed", why)
        self._add(u, message.values)
        self._contributions.keep(u, deposits, unmasked, message.disclosed)
        if self._complaints is not None and word is not None:
            self._complaints.keep(u, word, message.accepted)
        self._u3.add(u)

    def close(self) -> Summed:
        """Return the masked sum; abort if U3 is too small or not connected in the graph."""
        least, u2, u3 = self.params.least, self._commitments.keys(), self._u3
        # first, so that every later error has these verdicts
        if self._complaints is not None:
            self.verdicts += (*self._complaints.verdicts(),)
            self.disputes = self._complaints.disputes()
        self.enough(len(u3), self.params.min_survivors, "clients sent an input")
        graph = self.cohort.graph
        if self._complaints is not None:
            self._check_dealers(self._complaints)
            graph = self._complaints.graph()
        if not graph.is_connected(u3):
            raise TooFewSurvivors(
                f"the graph of the {len(u3)} survivors is not connected, which would reveal "
                "the sum of each part; nothing has been unmasked",
                phase=self.phase,
                survivors=len(u3),
                needed=len(u2),
            )
        dropped, holders = u2 - u3, self.cohort.graph.holders
        asked = made_once(
            {u: holders[u] for u in sorted(u3)},
            lambda them: Question(
                [v for v in them if v in u3], [v for v in them if v in dropped]
            ),
        )
        present = [u for u in asked if len(self.cohort.seen_by(u, u3)) >= least]
        threshold = self.params.threshold
        self.enough(len(present), threshold, f"clients have {least} holders that sent an input")
        return Summed(
            self.cohort,
            self._commitments,
            self._total,
            asked,
            present,
            self._contributions,
            self._complaints,
            self.verdicts,
        )

    def _word(self, u: int, message: MaskedInput) -> U8 | None:
        """Return the client's word on the received shares; None if semi-honest."""
        if self._complaints is None:
            given = message.complaints or message.disclosed or message.accepted
            why = "complaints or a signature in a semi-honest round, which has none"
            self.require(not given, u, "length", why)
            return None
        word = self._complaints.read(u, message.complaints)
        if word is None:
            self.reject(u, "accepted", "expected ascending senders of shares, and known kinds")
        signed = self._complaints.is_signed(u, word, message.accepted)
        self.require(signed, u, "accepted", "the client did not sign the shares it was sent")
        if self._complaints.are_too_many(word):
            self._convict(self._complaints, u, word, message.accepted)
        return word

    def _convict(self, complaints: Complaints, u: int, word: U8, signature: bytes) -> NoReturn:
        """Reject a client that complains of too many dealers, with a verdict."""
        # made once: a verdict takes h² hashes, and the client can repeat its short message
        known = {verdict.client: verdict for verdict in self.verdicts}
        if u not in known:
            known[u] = complaints.complainer(u, word, signature)
            self.verdicts += (known[u],)
        raise RemoteProtocolError(
            "the client complains of more dealers than may lie; leave it out",
            sender=u,
            phase=self.phase,
            check="dealer",
            verdicts=(known[u],),
        )

    def _add(self, u: int, packed: bytes) -> None:
        """Validate the values of a masked input and add them to the total."""
        ring, values = self.params.ring, self._values
        size = ring.packed_bytes(values.size)
        why = f"expected {values.size} elements of {ring.bits} bits, in {size} bytes"
        self.require(len(packed) == size, u, "length", why)
        try:
            _fast.unpack_bits(packed, ring.bits, values)
        except ValueError:
            self.reject(u, "range", f"{why}, and zeros in the last bits")
        # with R = 2^b no pattern of b bits is out of range
        if not ring.is_power_of_two:
            inside = int(values.max()) < ring.modulus
            self.require(inside, u, "range", f"an element outside [0, {ring})")
        ring.add_into(self._total, values)

    def _check_dealers(self, complaints: Complaints) -> None:
        """Raise RemoteProtocolError if a dealer's secrets have too few holders."""
        lacking = complaints.lacking(self.params.threshold)
        if lacking:
            more = f", and of {len(lacking) - 1} more" if len(lacking) > 1 else ""
            raise RemoteProtocolError(
                f"fewer than {self.params.threshold} survivors accepted the shares of client "
                f"{lacking[0]}{more}; nothing has been unmasked: begin a new round without the "
                "liars, who deal such shares or complain of good ones",
                sender=None,
                phase=self.phase,
                check="dealer",
                disputes=tuple(Dispute(v, w) for v in lacking for w in complaints.about(v)),
            )


def _inboxes(shared: KeysShared, senders: Mapping[int, list[int]]) -> dict[int, bytes]:
    """Return the message of each client that may send an input."""
    sealed, rows = shared.sealed.items, shared.sealed.by_peer()
    inboxes = {}
    for u, own in senders.items():
        # the rows of `sealed` and `checks` agree, since both have the same peers
        checks = b"" if shared.checks is None else shared.checks.items[rows[u]].tobytes()
        dealt = _NOTHING if shared.dealings is None else shared.dealings.sent_to(u, own)
        inboxes[u] = encode(
            Shares(
                shared.cohort.session,
                pack_ids(own),
                sealed[rows[u]].tobytes(),
                checks,
                *dealt,
            )
        )
    return inboxes
