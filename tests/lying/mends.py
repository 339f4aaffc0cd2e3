"""Mends of the library that can be taken out again, and the attack that must then succeed.

A mend is taken out by a context manager that patches the one function or line of it. A
`nullcontext` stands where the mend is not there yet.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from lying.checker import Finding
from lying.search import Search, alone, compare, downgrade, honest, lie, lies, repeat
from lying.worlds import PAIRS

Attack = Callable[[Search], None]


@dataclass(frozen=True)
class Mend:
    """A mend, and what is found without it.

    Attributes
    ----------
    taken_out : callable
        Function that returns a context manager, in which the library lacks the mend.
    door : str
        Key of `DOORS`.
    attack : callable
        Schedules of the lying server.
    found : callable
        Return whether a finding is what the mend prevents.
    """

    taken_out: Callable[[], AbstractContextManager[object]]
    door: str
    attack: Attack
    found: Callable[[Finding], bool]


def lie_about(*roots: str) -> Attack:
    """Return the attack that lies to the victim about each place in parts of the messages."""

    def attack(search: Search) -> None:
        known = lies(search, honest(search))
        some = [one for one in known if ".".join(one.place).startswith(roots)]
        lie(search, alone(some, times=1), ["the victim"])

    return attack


def lie_to_all(search: Search) -> None:
    """Tell everybody one lie about each place of the parameters."""
    known = lies(search, honest(search))
    begin = [one for one in known if one.step == "begin"]
    lie(search, alone(begin, times=1), ["everybody"])


def vary(*names: str) -> Attack:
    """Return the attack that compares these pairs of worlds."""

    def attack(search: Search) -> None:
        honest(search)
        compare(search, [pair for pair in PAIRS if pair.name in names])

    return attack


def ask_semi_honest(search: Search) -> None:
    honest(search)
    downgrade(search)


def repeat_all(search: Search) -> None:
    honest(search)
    repeat(search)


def is_of(kind: str, *places: str) -> Callable[[Finding], bool]:
    """Return a function that accepts findings of a kind, at places that begin so."""
    return lambda one: one.kind == kind and one.place.startswith(places or ("",))


MENDS: dict[str, Mend] = {
    "B1, Flower": Mend(
        nullcontext, "flower", lie_about("run_config"), is_of("input", "run_config")
    ),
    "B1, Flower, one-shot": Mend(
        nullcontext, "flower-one-shot", lie_about("run_config"), is_of("input", "run_config")
    ),
    "B1, Flower, metadata": Mend(
        nullcontext,
        "flower-one-shot",
        lie_about("message.metadata"),
        is_of("input", "message.metadata"),
    ),
    "B1, FLARE": Mend(
        nullcontext, "flare-filter", lie_about("arguments"), is_of("input", "arguments")
    ),
    "B1, one-shot sums": Mend(
        nullcontext,
        "take_part-one-shot-semi-honest",
        lie_about("message"),
        is_of("input", "message"),
    ),
    "B2, Flower, weights": Mend(nullcontext, "flower", vary("weights"), is_of("oracle")),
    "B2, Flower, metrics": Mend(nullcontext, "flower", vary("metrics"), is_of("oracle")),
    "B2, Flower, one-shot": Mend(
        nullcontext, "flower-one-shot", vary("weights", "nan"), is_of("oracle")
    ),
    "B2, FLARE, executor": Mend(
        nullcontext, "flare-executor", vary("weights", "raises"), is_of("oracle")
    ),
    "B2, FLARE, filter": Mend(
        nullcontext, "flare-filter", vary("weights", "no weight"), is_of("oracle")
    ),
    "B2, take_part": Mend(
        nullcontext, "take_part", vary("weight above the own", "shape"), is_of("oracle")
    ),
    "B2, take_part, one-shot": Mend(
        nullcontext, "take_part-one-shot", vary("weights", "infinite"), is_of("oracle")
    ),
    "B2, fedmf": Mend(nullcontext, "fedmf", vary("weights"), is_of("oracle")),
    "B3, helpers": Mend(nullcontext, "helpers", lie_to_all, is_of("few")),
    "B3, Flower": Mend(nullcontext, "flower", ask_semi_honest, is_of("downgrade")),
    "B3, FLARE": Mend(nullcontext, "flare-filter", ask_semi_honest, is_of("downgrade")),
    "C1": Mend(
        nullcontext,
        "flare-filter",
        lie_about("data.__headers__"),
        is_of("input", "task.data.__headers__.lying"),
    ),
    "C10": Mend(nullcontext, "flower", repeat_all, is_of("dropout")),
}
