"""Judge of a schedule: what an opened sum depends on, and what a server sees."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from lying.door import PROMISED, Outcome, Vector

ERROR = 1e-3
"""Bound on the error of an opened sum, with 16 fractional bits."""


ACCEPTED = {
    "fl_ctx.__app_root__": "path of the job's app on the site's disk, from its own FLARE"
}
"""Beginnings of places that trainings may read unbound, each with the reason."""


@dataclass(frozen=True)
class Finding:
    """A promise that does not hold.

    Attributes
    ----------
    kind : str
        "input": clients of one opened sum acted on different inputs. "few": an opened sum
        depends on fewer clients than promised. "wrong": it is not the sum of any clients.
        "foreign": the server's run ended in an error that is none of the library's. "oracle":
        something that a server sees depends on a private number. "dropout": an honest client
        dropped out because of a repeated message. "downgrade": a client with an identity was in
        a sum that is not active. "budget": vectors left a client beyond its budget, or without
        their loss in its ledger.
    door : str
    place : str
        Place of the difference in what was read, or name of the pair of worlds.
    schedule : str
        What the server did.
    """

    kind: str
    door: str
    place: str
    schedule: str

    def __str__(self) -> str:
        return f"{self.kind} [{self.door}] {self.place} ({self.schedule})"


def subsets(parts: Mapping[int, Vector], total: Vector) -> Iterator[frozenset[int]]:
    """Yield the sets of clients whose parts add up to a total, the smallest first.

    A part of zeros, such as that of a client that was told to learn at rate 0, adds nothing.
    So a sum is that of the others, too.
    """
    for size in range(len(parts) + 1):
        for chosen in combinations(parts, size):
            found = sum((parts[u] for u in chosen), np.zeros(total.shape))
            if np.abs(found - total).max() < ERROR:
                yield frozenset(chosen)


def judge(outcome: Outcome, door: str, schedule: str, *, plain: bool = True) -> list[Finding]:
    """Return the findings in the outcome of one sum.

    Parameters
    ----------
    outcome : Outcome
    door, schedule : str
    plain : bool
        True if the clients' parts are not clipped, so that they add up to the sum.
    """
    found = []
    if outcome.failed.endswith("foreign"):
        found.append(Finding("foreign", door, outcome.failed, schedule))
    if outcome.opened is None or not plain:
        return found
    matching = list(subsets(outcome.trained, outcome.opened))
    if not matching:
        return [*found, Finding("wrong", door, "sum", schedule)]
    if len(matching[0]) < PROMISED:
        place = f"{len(matching[0])} of {PROMISED} clients"
        found.append(Finding("few", door, place, schedule))
    views = [outcome.views[u] for u in matching[-1] if u in outcome.views]
    places = [one for one in differences(views) if not one.startswith(tuple(ACCEPTED))]
    return [*found, *(Finding("input", door, place, schedule) for place in sorted(places))]


def differences(views: Iterable[Mapping[str, str]]) -> set[str]:
    """Return the places at which views differ, or that not all have."""
    views = list(views)
    places = set().union(*views) if views else set()
    return {place for place in places if len({view.get(place) for view in views}) > 1}


def same(one: Outcome, other: Outcome) -> bool:
    """Return whether a server sees the same in two outcomes, but for masked bytes."""
    if one.answers != other.answers or one.failed != other.failed:
        return False
    if one.opened is None or other.opened is None:
        return one.opened is other.opened
    if one.shown.keys() != other.shown.keys():
        return False
    shown = [one.shown[name] - other.shown[name] for name in one.shown]
    return bool(np.abs(np.append(one.opened - other.opened, shown)).max() < ERROR)
