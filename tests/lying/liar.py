"""The voice of a lying server: it passes messages on, and alters a field for some clients."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from lying.walk import Path, at, mutations, replaced, substituted, walk

ANOTHERS = "another's"
"""Mutation to the value that an earlier client got at the same place."""


@dataclass(frozen=True)
class Lie:
    """An altered field: the step of the messages, the place in them, and the alteration."""

    step: str
    place: Path
    how: str

    def __str__(self) -> str:
        return f"{self.step}: {'.'.join(self.place) or '(whole)'} {self.how}"


class Liar:
    """Voice of the server in one schedule.

    Parameters
    ----------
    lies : sequence of Lie
    to : collection of int
        Clients that are lied to; the others get what an honest server sends.
    rebindings : mapping of bytes to bytes
        Digests to replace in all messages to those who are lied to, which then agree by those
        of the lie.
    repeats : str
        "twice": each message arrives twice. "before": the message of the phase before arrives
        again, first. The server takes the answer that is due.

    Attributes
    ----------
    places : dict of (step, place) to list of str
        Places in the messages so far, with the mutations of their values.
    told : int
        Number of lies told.
    digests : dict of (str, int) to bytes
        Digests by which a client agrees with the others, by kind and client, where the door
        knows them.
    """

    def __init__(
        self,
        lies: Sequence[Lie] = (),
        to: Collection[int] = (),
        *,
        rebindings: Mapping[bytes, bytes] | None = None,
        repeats: str = "",
    ) -> None:
        self.lies, self.to = tuple(lies), frozenset(to)
        self.rebindings, self.repeats = dict(rebindings or {}), repeats
        self.digests: dict[tuple[str, int], bytes] = {}
        self.places: dict[tuple[str, Path], list[str]] = {}
        self.told = 0
        self._earlier: dict[str, Any] = {}

    def tell(self, client: int, step: str, value: Any) -> Any:
        """Return what the server tells a client in place of an honest value."""
        if client in self.to:
            for lie in self.lies:
                if lie.step == step:
                    value = self._altered(value, lie)
            for honest, altered in self.rebindings.items():
                value = substituted(value, honest, altered)
        elif not self.lies:
            self._note(step, value)
        self._earlier[step] = value
        return value

    @property
    def found(self) -> dict[bytes, bytes]:
        """Honest and altered digests of each kind of which clients computed two."""
        found = {}
        for kind in {kind for kind, _ in self.digests}:
            sides: tuple[set[bytes], set[bytes]] = (set(), set())
            for (other, u), digest in self.digests.items():
                if other == kind:
                    sides[u in self.to].add(digest)
            if len(sides[0]) == len(sides[1]) == 1 and sides[0] != sides[1]:
                found[sides[0].pop()] = sides[1].pop()
        return {
            honest: digest
            for honest, digest in found.items()
            if self.rebindings.get(honest) != digest
        }

    def _note(self, step: str, value: Any) -> None:
        for path, one in walk(value):
            if path and (step, path) not in self.places:
                self.places[step, path] = [*mutations(one), ANOTHERS]

    def _altered(self, value: Any, lie: Lie) -> Any:
        try:
            old = at(value, lie.place)
        except KeyError:
            return value
        new = mutations(old).get(lie.how, old)
        if lie.how == ANOTHERS:
            with suppress(KeyError):
                new = at(self._earlier[lie.step], lie.place)
        if new is old:
            return value
        self.told += 1
        return replaced(value, lie.place, new)
