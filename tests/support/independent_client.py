"""A client of the secagg protocol, version 4, written from its specification alone (`§`).

A `Client` lives for one session (§7.3); its methods, called in the order of §7.1 or §7.2, turn
the server's answer into its next message. It rounds to nearest (§4.1), unless it is told
otherwise or has vectors of Bounded (§4.5). `independent_policy` has its policy (§3.4, §3.5). It
draws entropy as in Annex B. `independent_dealer` has its rounds 0 and 1, `independent_receiver`
its round 2.
"""

from __future__ import annotations

from collections.abc import Iterable

import independent_dealing as dealing
import independent_keys as keys
from independent_dealer import Dealer
from independent_machine import Sealing
from independent_messages import ascending, encode
from independent_params import Parameters
from independent_primitives import ProtocolError, cut, require, sign
from independent_receiver import Receiver

__all__ = ["Client", "Parameters", "ProtocolError", "Sealing"]


class Client(Dealer, Receiver):
    """One client in one round. `phase` is the message it sends next (§7).

    `sealing` is kept by the application for the next rounds of the session.
    """

    def answer(self, data: bytes, vector: Iterable, weight: int | None = None) -> bytes:
        """The message that is due; a client that has ended raises LocalProtocolError."""
        if self.phase == "advertise_keys":
            return self.advertise_keys()
        if self.phase == "masked_input":
            return self.masked_input(data, vector, weight)
        steps = {"share_keys": self.share_keys, "consistency_check": self.check_consistency}
        return steps.get(self.phase, self.unmask)(data)

    def check_consistency(self, data: bytes) -> bytes:
        """Round 3, active only (§8.4): from ConsistencyRequest; ConsistencySignature, once."""
        with self._step("consistency_check", "unmasking"):
            session, raw = self._decode(data, 8)
            require(session == self.session, "session")
            survivors = ascending(raw)
            require(self.u2.issuperset(survivors), "unknown id")
            require(self.id in survivors, "self")
            require(len(survivors) >= self.enough, "size")
            self.signed = raw
            signature = sign(self.identity, keys.signed_survivors(session, self.id, raw))
            return encode(9, self.id, self.session, signature)

    def unmask(self, data: bytes) -> bytes:
        """Round 4 (§8.5): from UnmaskRequest; UnmaskShares, and never again anything."""
        with self._step("unmasking", "finished"):
            session, raw, raw_dropped, raw_signers, signatures = self._decode(data, 6)
            require(session == self.session, "session")
            survivors, dropped = ascending(raw), ascending(raw_dropped)
            named = {*survivors, *dropped}
            require(len(named) == len(survivors) + len(dropped), "both shares")
            require(named <= self.u2, "unknown id")
            require(self.id in survivors, "self")
            require(named == self.u2, "missing id")
            require(len(survivors) >= self.enough, "size")
            if self.p.active:
                require(raw == self.signed, "consistency")
                signers = ascending(raw_signers)
                require(set(survivors).issuperset(signers), "unknown id")
                require(len(signatures) == 64 * len(signers), "length")
                require(len(signers) >= self.signers, "size")
                for u, signature in zip(signers, cut(signatures, 64), strict=True):
                    self._verify(u, signature, keys.signed_survivors(session, u, raw))
            else:
                require(not raw_signers + signatures, "length")
            kinds = [(u, 0) for u in survivors] + [(u, 1) for u in dropped]
            revealed = [(u, kind, self._reveal(u, kind)) for u, kind in kinds]
            signature = b""
            if self.p.active:
                answers = dealing.answers_list(session, self.id, revealed)
                signature = sign(self.identity, dealing.answer(session, self.id, answers))
            shares = b"".join(share for _, _, share in revealed)
            return encode(7, self.id, self.session, shares, signature)

    def _reveal(self, u: int, kind: int) -> bytes:
        """The share of b_u, or that of its masking seed."""
        return self._shares[u][kind]
