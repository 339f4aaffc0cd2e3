"""Verdicts `answer` that name nobody."""

from collections.abc import Iterator

from faults import flip
from signing import Redealt
from verdict_parts import (
    Parts,
    answered,
    dealt,
    listed,
    of_answer,
    opened,
    opened_as,
    verdict,
)
from whole_round import Round

import independent_dealing as dealing
from independent_primitives import u64le


def answer(rounds: dict[str, Round]) -> Iterator[tuple]:
    r = rounds["blame-wrong-share"]
    good = of_answer(r, 4, 2)

    def of(name: str, checks: list[str], client: int = 4, **changes: bytes) -> tuple:
        names = "dealer", "listed", "accepted", "answers", "answer", "opened"
        parts = dict(zip(names, good, strict=True)) | changes
        return name, r, verdict(r, "answer", client, [*parts.values()]), checks

    yield (
        "a holder that did nothing",
        r,
        verdict(r, "answer", 3, of_answer(r, 3, 2)),
        ["innocent"],
    )
    right = verdict(r, "answer", 4, of_answer(r, 4, 1))
    yield "another dealer's share was right", r, right, ["innocent"]
    yield "five parts", r, verdict(r, "answer", 4, good[:-1]), ["length"]
    yield "seven parts", r, verdict(r, "answer", 4, [*good, b""]), ["length"]
    yield of("another client", ["signature", "ids"], client=3)
    yield of("another dealer", ["leaf"], dealer=u64le(1))
    yield of("a dealer that is a stranger", ["unknown client", "leaf"], dealer=u64le(99))
    yield of("a dealer of seven bytes", ["length"], dealer=u64le(2)[:-1])
    yield of("one bit of its list", ["signature"], listed=flip(good[1], 8))
    yield of("an entry of its list less", ["signature"], listed=good[1][:-41])
    yield of("its list a byte short", ["length", "signature"], listed=good[1][:-1])
    yield of("no list", ["length"], listed=b"")
    yield of("one bit of what it accepted", ["signature"], accepted=flip(good[2]))
    other_list, other_accepted = listed(r, 3)
    yield of("another's list", ["signature"], listed=other_list, accepted=other_accepted)
    yield of("one bit of its answers", ["signature"], answers=flip(good[3], 20))
    yield of("no answers", ["length", "signature"], answers=b"")
    yield of("answers a byte short", ["length", "signature"], answers=good[3][:-1])
    yield of("one bit of its answer", ["signature"], answer=flip(good[4]))
    yield of("another's answer", ["signature"], answer=answered(r, 3)[1])
    for name, at in (("X", 8), ("a hash", 12), ("the other hash", 44), ("the check", 76),
                     ("the box's digest", 108)):  # fmt: skip
        yield of(f"one bit of {name}", ["leaf"], opened=flip(good[5], at))
    yield of("a path", ["length"], opened=opened(r, 2, 4))
    yield of("what is opened a byte short", ["length"], opened=good[5][:-1])
    yield of(
        "the leaf of another holder", ["leaf", "ids"], opened=opened_as(3, r.openings(2)[3])
    )
    # the dealer signs a second leaf of its holder, at the place of another
    hashes = dealing.share_hashes(r.session, 2, 4, bytes(80))
    second = Redealt(r, 2, {5: {"hashes": hashes}}).openings[5]
    yield of("a second leaf of its own", ["leaf"], opened=opened_as(4, second))
    own = rounds["blame-own-share"]
    yield from _own(own, of_answer(own, 4, 4))
    # an honest holder complains of the dealer, and answers with the hash of ff
    r = rounds["blame-noise"]
    data = verdict(r, "answer", 4, of_answer(r, 4, 2))
    yield "the answer of a holder that complained", r, data, ["leaf"]


def _own(r: Round, good: Parts) -> Iterator[tuple]:
    """Verdicts about a holder's own share."""
    honest = verdict(r, "answer", 3, of_answer(r, 3, 3))
    yield "a dealer's own share was right", r, honest, ["innocent"]
    dealer, signed, _, answers, answer, opening = good

    def of(name: str, checks: list[str], *parts: bytes) -> tuple:
        return name, r, verdict(r, "answer", 4, parts), checks

    listed_, accepted = listed(r, 4)
    yield of("a list for its own share", ["length"], dealer, listed_, accepted, *good[3:])
    yield of("a signature that is not empty", ["length"], dealer, signed, accepted, *good[3:])
    yield of("no path", ["ids", "root", "length"], *good[:-1], opening[:140])
    yield of("what another dealt", ["signature"], dealer, dealt(r, 3), b"", *good[3:])
    yield of(
        "the leaf of another", ["ids"], dealer, signed, b"", answers, answer, opened(r, 4, 3)
    )
    yield of("one bit of the path", ["root"], *good[:-1], flip(opening, -1))
