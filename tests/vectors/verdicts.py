"""verdicts.json: docs/protocol.md §14, verdicts of each kind, and bytes that name nobody.

The independent judge has the last word on every case here.
"""

from dataclasses import dataclass, field

from forged import forged
from signing import accepted_of, list_of
from verdict_parts import (
    Parts,
    of_answer,
    of_complainer,
    of_complaints,
    of_contribution,
    of_shares,
    verdict,
)
from whole_round import Round

import independent_judge
from independent_policy import Policy
from independent_primitives import ParameterError, ProtocolError


@dataclass
class Judged:
    """Bytes that a judge has, its colluders (None: the default), its registry's gaps."""

    name: str
    r: Round
    data: bytes
    colluders: int | None = None
    left_out: list[int] = field(default_factory=list)

    def outcome(self) -> dict[str, object]:
        """Return the judgement of the independent judge."""
        keys = {u: k for u, k in (self.r.registry or {}).items() if u not in self.left_out}
        try:
            named = independent_judge.judge(self.data, keys, Policy(colluders=self.colluders))
        except ProtocolError as error:
            return {"error": "RemoteProtocolError", "check": error.check}
        except ParameterError:
            return {"error": "ParameterError", "check": None}
        return {"client": named[0], "kind": named[1]}

    def described(self) -> dict[str, object]:
        return {"name": self.name, "round": self.r.name, "bytes": self.data,
                "colluders": self.colluders, "left_out": self.left_out}  # fmt: skip


def of(r: Round, name: str, kind: str, client: int, parts: Parts, **more: object) -> Judged:
    return Judged(name, r, verdict(r, kind, client, parts), **more)  # type: ignore[arg-type]


def complainer(r: Round, w: int, complaints: dict[int, int]) -> Parts:
    """Parts on w, had it signed these complaints."""
    signed = [list_of(r, w, complaints), accepted_of(r, w, complaints)]
    return of_complainer(r, w, signed, [*complaints])


def good(rounds: dict[str, Round]) -> list[Judged]:
    off, end = rounds["blame-off-polynomial"], rounds["blame-off-polynomial-end"]
    secret, many = rounds["blame-other-secret"], rounds["blame-complaints"]
    share, own = rounds["blame-wrong-share"], rounds["blame-own-share"]
    seed, hybrid = rounds["blame-wrong-share-of-the-seed"], rounds["blame-hybrid"]
    x, few = rounds["blame-contribution"], rounds["active-unmasking"]
    lists = rounds["hybrid-active-unmasking"]
    a, b, c, d = few.u3
    return [
        of(off, "a share off the polynomial", "shares", 2, of_shares(off, 2, [1, 2, 3, 4], 0)),
        of(off, "the same with other shares", "shares", 2, of_shares(off, 2, [1, 3, 4, 5], 0)),
        of(end, "a share of the seed off it", "shares", 4, of_shares(end, 4, [1, 2, 3], 1)),
        of(secret, "shares of another b", "shares", 3, of_shares(secret, 3, [1, 2, 3], 0)),
        of(share, "another share of b revealed", "answer", 4, of_answer(share, 4, 2)),
        of(seed, "another share of a seed revealed", "answer", 4, of_answer(seed, 4, 2)),
        of(own, "another share of its own revealed", "answer", 4, of_answer(own, 4, 4)),
        of(many, "three complaints", "complaints", 9, of_complaints(many, 9, [1, 2, 5])),
        of(many, "two complaints, one colluder", "complaints", 9,
           of_complaints(many, 9, [1, 5]), colluders=1),
        of(hybrid, "one complaint 2, nobody colludes", "complaints", 1,
           of_complaints(hybrid, 1, [2]), colluders=0),
        of(hybrid, "one complaint 1, nobody colludes", "complaints", 3,
           of_complaints(hybrid, 3, [4]), colluders=0),
        of(x, "a contribution that is not of the seed", "contribution", 4,
           of_contribution(x, 4, [1, 2, 3], 2)),
        of(few, "two complaints of four", "complainer", a, complainer(few, a, {b: 1, c: 1})),
        of(few, "three complaints of four", "complainer", d,
           complainer(few, d, {a: 1, b: 1, c: 1})),
        of(lists, "complaints 1 and 2", "complainer", a, complainer(lists, a, {b: 1, c: 2})),
    ]  # fmt: skip


def verdicts(rounds: dict[str, Round]) -> dict[str, object]:
    named, refused = [], []
    for case in good(rounds):
        outcome = case.outcome()
        assert "client" in outcome, (case.name, outcome)
        named.append(case.described() | outcome)
    for name, r, data, checks, more in forged(rounds):
        case = Judged(name, r, data, **more)
        outcome = case.outcome()
        assert "error" in outcome, name
        assert outcome["check"] in (checks or [None]), (name, outcome)
        refused.append(case.described() | {"error": outcome["error"], "checks": checks})
    registries = {case.r.name: case.r for case in good(rounds)}
    registries |= {r.name: r for _, r, *_ in forged(rounds)}
    return {
        "verdicts": named, "refused": refused,
        "registries": [
            {"round": name, "keys": [{"id": u, "identity_key": key}
                                     for u, key in (r.registry or {}).items()]}
            for name, r in sorted(registries.items())
        ],
    }  # fmt: skip
