"""Schedules of a lying server at a door, and the findings that they give."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product

from lying.checker import Finding, judge, same
from lying.door import CLIENTS, SIGMA, VICTIM, Door, Outcome, Settings, plain_world
from lying.liar import Liar, Lie
from lying.walk import Unbuildable
from lying.worlds import PAIRS, Pair

OTHERS = frozenset(CLIENTS) - {VICTIM}
SIDES = {
    "the victim": frozenset({VICTIM}),
    "all but the victim": OTHERS,
    "everybody": frozenset(CLIENTS),
}
DIGESTS = 2
"""Digests that a lie can change one after another: of a configuration, then of a message."""
TRAINING = frozenset({"masked_input", "report", "take_part"})
"""Steps in which clients train."""


class Learnt(Exception):
    """Findings about a door, as an error; the message has all of them."""


@dataclass
class Search:
    """Findings at a door so far.

    Attributes
    ----------
    schedules : int
        Sums that were run.
    seconds : float
    findings : list of Finding
    read : set of str
        Places that the training reads in an honest sum.
    """

    door: Door
    schedules: int = 0
    seconds: float = 0.0
    findings: list[Finding] = field(default_factory=list)
    read: set[str] = field(default_factory=set)

    def run(
        self, name: str, settings: Settings, liar: Liar, *, plain: bool = True
    ) -> Outcome | None:
        """Run a sum and judge it; None: the lie has no form on the wire."""
        began = time.perf_counter()
        try:
            outcome = self.door.sum(settings, liar)
        except Unbuildable:
            return None
        finally:
            self.schedules += 1
            self.seconds += time.perf_counter() - began
        self.findings += judge(outcome, self.door.name, name, plain=plain)
        return outcome

    def reads(self, lie: Lie) -> bool:
        """Return whether the training reads a place that a lie is about, or a part of it."""
        place = f".{'.'.join(lie.place)}."
        return lie.step in TRAINING and any(place in f".{one}." for one in self.read)

    def check(self) -> None:
        """Raise `Learnt` if anything was found."""
        if self.findings:
            raise Learnt("\n".join(map(str, self.findings)))


def honest(search: Search) -> Liar:
    """Run an honest sum, which must be right, and return the liar that walked its messages."""
    search.door.training.world = plain_world()
    liar = Liar()
    outcome = search.run("an honest sum", Settings(), liar)
    assert outcome is not None
    assert outcome.opened is not None, (search.door.name, outcome.failed, outcome.answers)
    assert outcome.trained.keys() == set(CLIENTS)
    search.read = set(outcome.views.get(VICTIM, ()))
    return liar


def lies(search: Search, liar: Liar) -> list[Lie]:
    """Return all lies about what a server sent, in a random order that is always the same.

    Lies about what the training reads come first. Those about one place are in one order.
    """
    places = list(liar.places.items())
    random.Random(32).shuffle(places)
    found = [Lie(step, place, how) for (step, place), hows in places for how in hows]
    return sorted(found, key=lambda lie: not search.reads(lie))


def alone(found: Iterable[Lie], times: int | None = None) -> Iterator[tuple[Lie, ...]]:
    """Yield each lie alone, one of each place before the second of any.

    `times` is the largest number of lies about a place; None: there is none.
    """
    left = list(found)
    for _ in itertools.count() if times is None else range(times):
        if not left:
            return
        places, later = set(), []
        for lie in left:
            if (lie.step, lie.place) in places:
                later.append(lie)
            else:
                places.add((lie.step, lie.place))
                yield (lie,)
        left = later


def together(found: Iterable[Lie], seed: int = 32) -> Iterator[tuple[Lie, ...]]:
    """Yield pairs of lies about different places without end."""
    drawn, given = random.Random(seed), list(found)
    while True:
        one, other = drawn.sample(given, 2)
        if one.place != other.place:
            yield one, other


def lie(
    search: Search, schedules: Iterable[tuple[Lie, ...]], sides: Sequence[str] = tuple(SIDES)
) -> None:
    """Tell lies to the victim, to all but the victim, and to everybody.

    If a lie changes the digest by which clients agree, it is told again under the digest of the
    lie. Those who are lied to then cannot know.
    """
    door = search.door
    door.training.world, door.training.scales = plain_world(), True
    for told, side in product(schedules, sides):
        to = SIDES[side]
        name = f"{' and '.join(map(str, told))}, to {side}"
        liar = Liar(told, to)
        search.run(name, Settings(), liar)
        for _ in range(DIGESTS):
            if not liar.found:
                break
            liar = Liar(told, to, rebindings={**liar.rebindings, **liar.found})
            search.run(f"{name}, under its digest", Settings(), liar)


def repeat(search: Search) -> None:
    """Deliver messages twice, or late; nobody may drop out of the sum."""
    door = search.door
    door.training.world = plain_world()
    for how in door.repeats:
        outcome = search.run(f"repeats: {how}", Settings(), Liar(to=CLIENTS, repeats=how))
        assert outcome is not None
        lost = [u for u in CLIENTS if any(what[1] != "answer" for what in outcome.answers[u])]
        if lost or outcome.opened is None:
            search.findings.append(Finding("dropout", door.name, how, f"repeats: {how}"))


def downgrade(search: Search) -> None:
    """Ask clients with identities for sums that are not active, or of suite x25519."""
    door = search.door
    if not door.keyed:
        return
    weaker = {"security": Settings(active=False)}
    if not door.one_shot:  # where the helpers' keys decide the suite
        weaker["suite"] = Settings(suite="x25519")
    for place, settings in weaker.items():
        door.training.world = plain_world()
        outcome = search.run(f"weaker {place}", settings, Liar(to=CLIENTS))
        assert outcome is not None
        if outcome.opened is not None or outcome.trained:
            found = Finding("downgrade", door.name, place, f"weaker {place}")
            search.findings.append(found)


def spend(search: Search, count: int = 8) -> None:
    """Ask clients with budgets for sum after sum, and lie about `count` places of the noise.

    Whatever the parameters say, and however often, no more may leave than the budget allows.
    In two worlds the budget ends at the same sum.
    """
    door = search.door
    if not door.budgeted:
        return
    noised = Settings(sigma=SIGMA)
    door.training.world, walked = plain_world(), Liar()
    search.run("a noised sum", noised, walked)
    known = [one for one in lies(search, walked) if "parameters" in one.place]
    first = sorted(known, key=lambda one: "noise" not in one.place)  # what a ledger depends on
    told: list[tuple[Lie, ...]] = [(), *itertools.islice(alone(first), count)]
    try:
        for some in told:
            name = f"budgets: {' and '.join(map(str, some)) or 'no lie'}"
            door.give_ledgers()
            search.run(name, noised, Liar(some, CLIENTS, repeats="twice"))
            search.run(name, noised.changed(asked=2), Liar(some, CLIENTS))
            search.run(name, noised, Liar())
            found = (Finding("budget", door.name, f"client {u}", name) for u in door.misspent())
            search.findings += found
        for pair in PAIRS:
            if pair.name not in door.pairs or pair.settings != Settings():
                continue
            seen = []
            for door.training.world in pair.worlds:
                door.give_ledgers()
                three = [search.run(pair.name, noised, Liar()) for _ in range(3)]
                seen.append([one.answers for one in three if one is not None])
            if seen[0] != seen[1]:
                search.findings.append(Finding("oracle", door.name, pair.name, str(noised)))
    finally:
        door.take_ledgers()


def compare(search: Search, pairs: Iterable[Pair] = PAIRS) -> None:
    """Run the same schedule in two worlds; a server must see the same."""
    door = search.door
    door.training.scales = False
    try:
        for pair in pairs:
            if pair.name not in door.pairs:
                continue
            found = []
            for world in pair.worlds:
                door.training.world = world
                outcome = search.run(pair.name, pair.settings, Liar(to=CLIENTS), plain=False)
                assert outcome is not None
                found.append(outcome)
            if not same(*found):
                schedule = str(pair.settings)
                search.findings.append(Finding("oracle", door.name, pair.name, schedule))
    finally:
        door.training.scales = True
