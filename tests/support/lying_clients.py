"""Rounds in which some clients lie, by patches that hold while such a client answers."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from unittest import mock

import numpy as np

from harness import Cohort, make_params
from secagg import (
    Client,
    ClientPolicy,
    Phase,
    RemoteProtocolError,
    RoundParams,
    RoundResult,
    Verdict,
    blame,
)
from secagg.client import complaints, sharing
from secagg.protocol import dealing

Lie = Callable[[Client], AbstractContextManager[object]]
"""Patches while a client answers."""
M61 = 2**61 - 1


class LiarsCohort(Cohort):
    """A round in which each client of `lies` answers under the patches of its lies."""

    def __init__(
        self,
        params: RoundParams,
        lies: Mapping[int, Iterable[Lie]] | None = None,
        policy: ClientPolicy | None = None,
    ) -> None:
        super().__init__(params, policy=policy)
        self.lies = {} if lies is None else {u: [*some] for u, some in lies.items()}

    def answer(self, u: int, data: bytes) -> bytes:
        with ExitStack() as stack:
            for lie in self.lies.get(u, ()):
                stack.enter_context(lie(self.clients[u]))
            return super().answer(u, data)

    def run(self, *leaving: Collection[int]) -> None:
        """Run the rest of the round; the clients in each of `leaving` miss a phase, and later.

        The phases are counted from the next one.
        """
        gone = set[int]()
        for some in leaving:
            gone |= set(some)
            self.advance(1, without=gone)
        while self.inbox:
            self.advance(1, without=gone)


def active_params(n: int, suite: str = "x25519", **changes: object) -> RoundParams:
    return make_params(n, security="active", suite=suite, **changes)


def ended(cohort: LiarsCohort, *leaving: Collection[int]) -> RoundResult | RemoteProtocolError:
    """Return the result or the error of the rest of a round."""
    try:
        cohort.run(*leaving)
    except RemoteProtocolError as error:
        return error
    result = cohort.server.result()
    assert result.integers.tolist() == cohort.expected(result.survivors)
    return result


def named(verdicts: Iterable[Verdict]) -> list[tuple[int, str]]:
    """Return client and kind of verdicts, sorted."""
    return sorted((verdict.client, verdict.kind) for verdict in verdicts)


def convicted(cohort: Cohort, verdicts: Iterable[Verdict]) -> list[tuple[int, str]]:
    """Return `named`, if the judge agrees with each verdict."""
    verdicts, policy = [*verdicts], ClientPolicy(corrupt=0, dropout=0, colluders=0)
    for verdict in verdicts:
        assert blame.check(verdict.data, cohort.registry, policy) == verdict.client
    return named(verdicts)


def _changed(phase: Phase, module: object, name: str, change: Callable[..., object]) -> Lie:
    """Return a lie in a phase, which changes results: ``change(result, *arguments)``."""
    honest = getattr(module, name)

    def lied(*arguments: object, **more: object) -> object:
        return change(honest(*arguments, **more), *arguments)

    def lie(client: Client) -> AbstractContextManager[object]:
        due = client.phase is phase
        return mock.patch.object(module, name, lied) if due else nullcontext()

    return lie


def _dealt(module: object, name: str, change: Callable[..., object]) -> Lie:
    return _changed(Phase.SHARE_KEYS, module, name, change)


def deals_off(rows: Collection[int], kind: int = dealing.B_SHARE, by: int = 1) -> Lie:
    """Deal shares off the polynomial to the holders in these rows, and hash what is dealt."""

    def spoil(values: np.ndarray, *_: object) -> np.ndarray:
        values[list(rows), 5 * kind] ^= np.uint64(by)
        return values

    return _dealt(sharing.shamir, "split_limbs", spoil)


def deals_no_field_element(rows: Collection[int]) -> Lie:
    """Deal integers of p or more."""

    def spoil(values: np.ndarray, *_: object) -> np.ndarray:
        values[list(rows), 0] = np.uint64(M61)
        return values

    return _dealt(sharing.shamir, "split_limbs", spoil)


def publishes_another(kind: int) -> Lie:
    """Share another b or s than the client publishes."""
    if kind == dealing.B_SHARE:
        return _dealt(sharing.keys, "commitment", lambda *_: os.urandom(32))

    def other(values: np.ndarray, limbs: np.ndarray, *_: object) -> np.ndarray:
        values[:, 5] = (values[:, 5] + np.uint64(1)) % np.uint64(M61)  # on a polynomial
        return values

    return _dealt(sharing.shamir, "split_limbs", other)


def seals_noise(places: Collection[int]) -> Lie:
    """Seal noise for the peers at some places, counted without the client itself."""

    def spoil(sealed: np.ndarray, *_: object) -> np.ndarray:
        sealed[list(places), -1] ^= 1
        return sealed

    return _dealt(sharing.sealing, "seal", spoil)


def hashes_others(rows: Collection[int]) -> Lie:
    """Hash other shares than are in the boxes of the holders in these rows."""

    def spoil(hashes: np.ndarray, *_: object) -> np.ndarray:
        hashes = hashes.copy()
        hashes[list(rows), 0] ^= 1
        return hashes

    return _dealt(sharing, "hash_shares", spoil)


def hashes_withheld(rows: Collection[int]) -> Lie:
    """Hash, for the holders in these rows, what they reveal after a complaint: bytes ff."""

    def spoil(hashes: np.ndarray, session: bytes, me: int, ids: np.ndarray, *_: object):
        hashes, at = hashes.copy(), list(rows)
        none = np.full((len(at), 40), 255, np.uint8)
        both = [dealing.share_hashes(kind, session, me, ids[at], none) for kind in (0, 1)]
        hashes[at] = np.concatenate(both, axis=1)
        return hashes

    return _dealt(sharing, "hash_shares", spoil)


def checks_others(places: Collection[int]) -> Lie:
    """Send checks that miss p and q of the peers at some places."""

    def spoil(checks: np.ndarray, *_: object) -> np.ndarray:
        checks = checks.copy()
        checks[list(places), 0] ^= 1
        return checks

    return _dealt(sharing.pairs, "checks", spoil)


def contributes_others(places: Collection[int]) -> Lie:
    """Contribute p and q of no seed to the masks with peers at some places, and check these."""

    def spoil(both: np.ndarray, *_: object) -> np.ndarray:
        both = both.copy()
        both[list(places), 0] ^= 1
        return both

    return _dealt(sharing.pairs, "contributions", spoil)


def complains(kinds: Mapping[int, int], apart: set[int] | None = None) -> Lie:
    """Complain of dealers by their ids, and answer as after true complaints.

    `apart` gets the dealers with whom the client has no mask, which it denies.
    """

    def spoil(word: np.ndarray, opened: object, hashes: object, peers: object, *_: object):
        ids = peers.ids.tolist()
        for dealer, kind in kinds.items():
            if dealer in ids:
                at = ids.index(dealer)
                if apart is not None and word[at] == dealing.UNMASKED != kind:
                    apart.add(dealer)
                word[at] = kind
        return word

    return _changed(Phase.MASKED_INPUT, complaints, "judge", spoil)


def discloses(change: Callable[[bytes], bytes]) -> Lie:
    """Disclose other secrets of pairs."""
    return _changed(
        Phase.MASKED_INPUT, complaints, "pack_disclosed", lambda data, *_: change(data)
    )


def reveals_others(owners: Collection[int]) -> Lie:
    """Reveal other shares of some owners, and sign these."""

    def change(client: Client) -> AbstractContextManager[object]:
        state = client._state
        if client.phase is Phase.UNMASKING:
            halves = [
                {v: _flipped(share) if v in owners else share for v, share in half.items()}
                for half in (state.self_shares, state.mask_shares)
            ]
            client._state = dataclasses.replace(
                state, self_shares=halves[0], mask_shares=halves[1]
            )
        return nullcontext()

    return change


def _flipped(share: bytes) -> bytes:
    return bytes([share[0] ^ 1]) + share[1:]
