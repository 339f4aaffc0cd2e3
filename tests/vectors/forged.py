"""Verdicts that name nobody: parts altered, and honest clients that a server would accuse."""

from collections.abc import Iterator

from forged_answer import answer
from forged_complaints import complainer, complaints
from forged_shares import bytes_, contribution, shares
from whole_round import Round

Forged = tuple[str, Round, bytes, list[str], dict]
"""Name, round, bytes, the checks that fail (none: the policy), what is special of the judge."""


def forged(rounds: dict[str, Round]) -> Iterator[Forged]:
    for kind in (bytes_, shares, answer, complaints, contribution, complainer):
        for name, r, data, checks, *more in kind(rounds):
            of = kind.__name__.strip("_")
            yield f"{of}: {name}", r, data, checks, more[0] if more else {}
