"""Clients that lie, each in one way, to the holders that `to` names."""

from collections.abc import Callable
from dataclasses import replace

from draws import draw
from parties import Remembering

import independent_dealing as dealing
from independent_dealer import Dealt
from independent_keys import SHAMIR_PRIME, commitment
from independent_primitives import integers, u64le
from independent_receiver import Came


def with_word(share: bytes, place: int, change: Callable[[int], int]) -> bytes:
    """The share with one of its integers changed."""
    words = integers(share)
    words[place] = change(words[place])
    return b"".join(map(u64le, words))


class Liar(Remembering):
    """A client that lies to some, or about some."""

    to: tuple[int, ...] = ()

    @classmethod
    def at(cls, *to: int) -> type["Liar"]:
        return type(cls.__name__, (cls,), {"to": to})


class NoiseDealer(Liar):
    """Sends a box that does not open."""

    def _seal(self, v: int, content: bytes) -> bytes:
        box = super()._seal(v, content)
        return draw(f"noise {self.id} {v}", len(box)) if v in self.to else box


class OffPolynomial(Liar):
    """Deals a share that is on no polynomial, and signs its hash."""

    place = 2

    def _deal(self, v: int, x: int, share: bytes) -> Dealt:
        if v in self.to:
            share = with_word(share, self.place, lambda word: (word + 1) % SHAMIR_PRIME)
        return super()._deal(v, x, share)


class SeedOffPolynomial(OffPolynomial):
    """The same with the masking seed."""

    place = 7


class TooLarge(Liar):
    """Deals a share with the integer p, and signs its hash."""

    def _deal(self, v: int, x: int, share: bytes) -> Dealt:
        if v in self.to:
            share = with_word(share, 9, lambda word: SHAMIR_PRIME)
        return super()._deal(v, x, share)


class OtherHashes(Liar):
    """Signs hashes of other shares than those that it seals."""

    def _deal(self, v: int, x: int, share: bytes) -> Dealt:
        dealt = super()._deal(v, x, share)
        if v not in self.to:
            return dealt
        other = with_word(share, 0, lambda word: word ^ 1)
        hashes = dealing.share_hashes(self.session, self.id, v, other)
        return replace(dealt, opening=replace(dealt.opening, hashes=hashes))


class OtherCheck(Liar):
    """Sends a check that its contribution misses."""

    def _deal(self, v: int, x: int, share: bytes) -> Dealt:
        dealt = super()._deal(v, x, share)
        if v not in self.to:
            return dealt
        other = replace(dealt.opening, check=draw(f"check {self.id} {v}", 32))
        return replace(dealt, opening=other)


class OtherContribution(Liar):
    """Seals a contribution that does not come from its seed, with a check that fits it."""

    def _contribution(self, v: int) -> tuple[bytes, bytes]:
        if v not in self.to:
            return super()._contribution(v)
        return draw(f"p {self.id} {v}", 32), draw(f"q {self.id} {v}", 32)


class OtherSecret(Liar):
    """Publishes the commitment to another b than it shares."""

    def _commitment(self) -> bytes:
        return commitment(self.session, self.id, draw(f"another b {self.id}", 32))


class FalseComplaint(Liar):
    """Complains of dealers that did nothing wrong."""

    def _complaint(self, v: int, of: Came, opened: tuple[bytes, bytes, bytes]) -> int:
        if v in self.to:
            return 2 if self.p.hybrid else 1
        return super()._complaint(v, of, opened)


class WrongShare(Liar):
    """Flips the lowest bit of shares that it reveals; without `to`, of the first."""

    def _reveal(self, u: int, kind: int) -> bytes:
        share = super()._reveal(u, kind)
        self.to = self.to or (u,)
        return bytes([share[0] ^ 1]) + share[1:] if u in self.to else share
