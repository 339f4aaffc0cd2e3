"""The walk finds every field, and the checker and the distinguisher what they should."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest

from lying.checker import differences, judge, subsets
from lying.door import CLIENTS, Outcome, Settings, plain_world
from lying.liar import Liar, Lie
from lying.oracle import Features, advantages
from lying.sessions import round_params
from lying.walk import Unbuildable, at, leaves, mutations, replaced, walk
from secagg.session.wire import AttemptName, Task, encode, read_task

NAME = AttemptName(b"r" * 8, 1, 0, b"f" * 8, b"m" * 32)
FRAME = encode(
    Task(b"i" * 16, 1, 0, "report", round_params(Settings(), True, NAME).to_bytes(), b"m", b"")
)


def test_walk_finds_the_fields_in_frames_and_parameters() -> None:
    places = {".".join(path): value for path, value in walk(FRAME)}
    assert places["params.encoding.clip"] == 8.0
    assert places["params.session.message"] == b"m" * 32
    assert {
        f"params.{f}" for f in ("n_clients", "max_weight", "security", "suite")
    } <= places.keys()
    assert {f"{f}" for f in Task.__struct_fields__} <= places.keys()


def test_walk_finds_fields_that_nobody_named() -> None:
    class New(msgspec.Struct, array_like=True):
        known: int
        added: dict[str, float]

    data = b"\2" + msgspec.msgpack.encode(New(1, {"rate": 0.5}))
    assert leaves({"answer": data}) == {"answer.0": "1", "answer.1.rate": "0.5"}


# the smallest number of survivors that parameters allow; see `RoundParams`
FOLLOWS = {("params", "threshold"): {("params", "min_survivors")}}


def test_altered_field_is_the_only_difference() -> None:
    for path, value in walk(FRAME):
        for new in mutations(value).values():
            try:
                altered = replaced(FRAME, path, new)
            except Unbuildable:
                continue
            if path and isinstance(altered, bytes) and altered != FRAME:
                places = {p for p, _ in walk(altered)} & {p for p, _ in walk(FRAME)}
                changed = {p for p in places if at(altered, p) != at(FRAME, p)}
                changed -= FOLLOWS.get(path, set())
                assert all(p[: len(path)] == path or path[: len(p)] == p for p in changed)


def test_lie_is_told_to_some_only() -> None:
    liar = Liar([Lie("report", ("number",), "more")], to=[11])
    task = read_task(FRAME)
    assert liar.tell(11, "report", task).number == 2
    assert liar.tell(22, "report", task) is task
    assert liar.tell(11, "masked_input", task) is task
    assert liar.told == 1


def parts() -> dict[int, np.ndarray]:
    return {u: private.summed for u, private in plain_world().items()}


def outcome_of(*clients: int) -> Outcome:
    given = parts()
    opened = sum((given[u] for u in clients), np.zeros(3))
    return Outcome(trained=given, opened=opened)


@pytest.mark.parametrize(
    ("clients", "kinds"),
    [(CLIENTS, []), (CLIENTS[1:], []), (CLIENTS[:2], ["few"]), (CLIENTS[:1], ["few"])],
)
def test_checker_counts_the_clients_of_a_sum(
    clients: tuple[int, ...], kinds: list[str]
) -> None:
    found = judge(outcome_of(*clients), "door", "schedule")
    assert [one.kind for one in found] == kinds


def test_checker_sees_clients_whose_updates_are_zero() -> None:
    """Told to learn at rate 0, three of four clients add nothing: the sum is one's vector."""
    outcome = outcome_of(CLIENTS[0])
    outcome.trained |= {u: np.zeros(3) for u in CLIENTS[1:]}
    assert len(list(subsets(outcome.trained, outcome.opened))) == 8
    assert [one.kind for one in judge(outcome, "door", "schedule")] == ["few"]


def test_checker_sees_a_sum_of_nobody() -> None:
    outcome = outcome_of(*CLIENTS)
    outcome.opened = outcome.opened + 0.1
    assert [one.kind for one in judge(outcome, "door", "schedule")] == ["wrong"]


def test_checker_compares_the_views_of_those_in_the_sum() -> None:
    outcome = outcome_of(*CLIENTS[1:])
    outcome.views = {u: {"run_config.lr": "0.1"} for u in CLIENTS}
    outcome.views[CLIENTS[0]] = {"run_config.lr": "1.0"}  # not in the sum
    assert judge(outcome, "door", "schedule") == []
    outcome.views[CLIENTS[1]] = {}
    (found,) = judge(outcome, "door", "schedule")
    assert (found.kind, found.place) == ("input", "run_config.lr")
    assert differences(outcome.views.values()) == {"run_config.lr"}


def sampled(leak: float, *sides: str | float) -> float:
    """Return the advantage when a feature is the world in a part of the samples."""
    draw = random.Random(1)
    worlds = [draw.randrange(2) for _ in range(1000)]
    samples: list[Features] = []
    for world in worlds:
        shown = world if draw.random() < leak else draw.randrange(2)
        noise = {f"mean {u}": draw.gauss(0, 1) for u in range(12)}
        samples.append({**noise, "answers": sides[shown], "sum": 7.5})
    return float(np.mean(advantages(samples, worlds)))


def test_distinguisher_has_the_advantage_of_the_leak() -> None:
    sides = "declined", "answer"
    assert abs(sampled(0.0, *sides)) < 0.1
    assert sampled(1.0, *sides) > 0.99
    assert 0.4 < sampled(0.5, *sides) < 0.6
    assert sampled(1.0, 7.5, 8.5) > 0.9  # sums
