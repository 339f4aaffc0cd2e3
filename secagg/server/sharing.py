"""Round 1 of the server: send the rosters and collect sealed shares, checks and hashes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from secagg.protocol import Phase
from secagg.protocol.messages import (
    CHECK_BYTES,
    SEALED_BYTES,
    Roster,
    ShareKeys,
    encode,
    pack_ids,
)
from secagg.server.cohort import Cohort, PerPeer, made_once
from secagg.server.dealings import Dealings
from secagg.server.stages import SessionStage


@dataclass(frozen=True, eq=False)
class KeysShared:
    """Commitment and sealed shares of each client of U2, by id.

    Attributes
    ----------
    cohort : Cohort
    commitments : dict of id to bytes
    sealed : PerPeer of uint8
    checks : PerPeer of uint8 or None
        Checks of the contributions to masks; None in suite x25519.
    dealings : Dealings or None
        Signed hashes of all shares; None in the semi-honest variant.
    present : list of int, ascending
        Clients with enough holders in U2, which can send an input.
    """

    cohort: Cohort
    commitments: dict[int, bytes]
    sealed: PerPeer[np.uint8]
    checks: PerPeer[np.uint8] | None
    dealings: Dealings | None
    present: list[int]


class Sharing(SessionStage):
    """Round 1: send rosters and collect sealed shares; `close` returns all sealed shares."""

    phase = Phase.SHARE_KEYS

    def __init__(self, cohort: Cohort) -> None:
        publics = cohort.publics
        rosters = made_once(
            cohort.graph.holders,
            lambda holders: encode(
                Roster(
                    cohort.params.to_bytes(),
                    len(publics),
                    cohort.digest,
                    pack_ids(holders),
                    b"".join(publics[v].seal for v in holders),
                    b"".join(publics[v].mask for v in holders),
                    b"".join(publics[v].kem for v in holders),
                    b"".join(cohort.signatures[v] for v in holders),
                )
            ),
        )
        super().__init__(cohort, rosters)
        self._commitments: dict[int, bytes] = {}
        ids = made_once(cohort.graph.holders, lambda holders: np.array(holders, np.uint64))
        receivers = {u: own[own != u] for u, own in ids.items()}
        suite = cohort.params.suite
        self._sealed = PerPeer(receivers, SEALED_BYTES[suite], np.uint8)
        self._checks = None
        if suite == "hybrid":
            self._checks = PerPeer(receivers, CHECK_BYTES, np.uint8)
        self._dealings = Dealings(cohort) if cohort.params.active else None

    def take(self, u: int, data: bytes) -> None:
        """Validate and store a client's commitment, sealed shares, checks and hashes."""
        message = self.read(u, data, ShareKeys)
        sealed = self._sealed.read(u, message.sealed)
        count = len(self._sealed.items[self._sealed.rows[u]])
        if sealed is None:
            self.reject(u, "length", f"expected one sealed share for each of {count} receivers")
        checks = None
        if self._checks is None:
            why = "checks in suite x25519, which has none"
            self.require(not message.checks, u, "length", why)
        else:
            checks = self._checks.read(u, message.checks)
            if checks is None:
                self.reject(u, "length", f"expected {count} checks of contributions")
        if self._dealings is None:
            why = "signed hashes in a semi-honest round, which has none"
            self.require(not message.hashes and not message.dealt, u, "length", why)
        else:
            fits = self._dealings.fits(message)
            self.require(fits, u, "length", f"expected two hashes for {count + 1} holders")
            signed = self._dealings.take(u, message, checks, sealed)
            why = "the client did not sign the root of these hashes and sealed shares"
            self.require(signed, u, "dealt", why)
        self._sealed.keep(u, sealed)
        if self._checks is not None and checks is not None:
            self._checks.keep(u, checks)
        self._commitments[u] = message.commitment

    def close(self) -> KeysShared:
        """Return the commitments and sealed shares."""
        fewest, least, u2 = self.params.min_survivors, self.params.least, self._commitments
        self.enough(len(u2), fewest, "clients shared their keys")
        # a client with too few holders left would reject its shares, so nothing is sent to it
        present = [u for u in sorted(u2) if len(self.cohort.seen_by(u, u2)) >= least]
        self.enough(
            len(present), fewest, f"clients have {least} holders that shared their keys"
        )
        return KeysShared(self.cohort, u2, self._sealed, self._checks, self._dealings, present)
