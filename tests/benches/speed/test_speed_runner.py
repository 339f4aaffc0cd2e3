"""Measurement of a row: turns, processes, and rivals that are left out."""

from __future__ import annotations

from typing import Self

import pytest

from benches.speed import runner, scaling
from benches.speed.rows import Arguments, Rival, Row
from benches.speed.runner import Absent, known_tiers, measure
from benches.speed.scaling import THREADS, Series, grow
from secagg.errors import SecAggError

TIERS = ("vaes512", "aesni", "portable", "pure")
Call = tuple[str, str, str, int, int]


class Fake:
    """Worker that notes what it is asked, and takes `arguments["size"]` seconds a call."""

    calls: list[Call]
    open: list[object]

    def __init__(self, code: str, tier: str) -> None:
        self._of = code, tier
        Fake.open.append(self)

    def ask(self, case: str, arguments: Arguments, threads: int) -> float:
        if case == "other.absent":
            raise Absent("it is not installed")
        size = int(str(arguments.get("size", 1)))
        Fake.calls.append((*self._of, case, size, threads))
        return size / threads

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        Fake.open.remove(self)


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    Fake.calls, Fake.open = [], []
    monkeypatch.setattr(runner, "Worker", Fake)
    monkeypatch.setattr(scaling, "Worker", Fake)
    monkeypatch.setattr(runner._fast, "TIERS", TIERS)


def row(*rivals: Rival, cores: tuple[int, ...] = (1, 2), runs: int | None = None) -> Row:
    return Row("row", "row", "own.case", {"size": 6}, {"size": 1}, rivals, cores, runs=runs)


def measured(one: Row, tier: str = "vaes512", *, quick: bool = False) -> runner.Measured:
    return measure(one, tier, 2, lambda _: None, quick=quick)


def test_ways_are_measured_in_turn_after_one_to_warm_up() -> None:
    found = measured(row(Rival("old", "own.case", code="abc"), Rival("a", "b.c", tier="aesni")))
    own = [("this", "vaes512", "own.case", 6, cores) for cores in (1, 2)]
    old, other = ("abc", "vaes512", "own.case", 6, 1), ("this", "aesni", "b.c", 6, 1)
    assert Fake.calls == [old, other, own[0], *2 * [*own, old, other]]
    assert found.seconds == {1: [6, 6], 2: [3, 3]}
    assert [one.seconds for one in found.against] == [[6, 6], [6, 6]]
    assert [found.ratio(found.against[0], cores) for cores in (1, 2)] == [1, 2]
    assert Fake.open == []


def test_slow_ways_are_not_warmed_up_and_run_less() -> None:
    found = measured(row(Rival("slow", "b.c", runs=1), cores=(1,)))
    assert [call[2] for call in Fake.calls] == ["own.case", "own.case", "b.c", "own.case"]
    assert [one.seconds for one in found.against] == [[6]]
    Fake.calls.clear()
    measured(row(cores=(1,), runs=1))
    assert len(Fake.calls) == 1


def test_absent_rival_is_left_out() -> None:
    slow = Rival("absent", "other.absent", runs=1)
    rivals = (Rival("absent", "other.absent"), slow, Rival("b", "b.c", arguments={"size": 9}))
    found = measured(row(*rivals))
    assert [bool(one.absent) for one in found.against] == [True, True, False]
    assert [len(one.seconds) for one in found.against] == [0, 0, 2]
    assert found.ratio(found.against[2], 1) == 1.5
    assert found.document()["against"]
    Fake.calls.clear()
    measured(row(), quick=True)
    assert {call[3] for call in Fake.calls} == {1}


@pytest.mark.parametrize("tier", ["aesni", "vaes"])
def test_rival_with_the_tier_of_the_row_or_none_is_left_out(tier: str) -> None:
    assert measured(row(Rival("a", "b.c", tier=tier)), "aesni").against == []


def test_processes_end_after_ctrl_c() -> None:
    def interrupt(what: str) -> None:
        if "turn 2" in what:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(row(), "vaes512", 2, interrupt)
    assert Fake.calls
    assert Fake.open == []


@pytest.mark.parametrize(
    ("axis", "sizes", "threads"), [("size", [2, 4], [1, 1]), (THREADS, [1, 1], [2, 4])]
)
def test_series_grows_its_axis(axis: str, sizes: list[int], threads: list[int]) -> None:
    series = Series("s", axis, (2, 4, 8), 1, "n", {"other": 3}, "own.case")
    grown = grow(series, "vaes512", 2, lambda _: None, quick=True)
    assert [call[3:] for call in Fake.calls] == 2 * list(zip(sizes, threads, strict=True))
    assert grown.points == [2, 4]
    assert [len(one) for one in grown.seconds.values()] == [2, 2]


def test_known_tiers() -> None:
    assert known_tiers(None, TIERS) == ["vaes512"]
    assert known_tiers("all", TIERS) == ["vaes512", "aesni", "portable"]
    assert known_tiers("pure,aesni", TIERS) == ["pure", "aesni"]
    with pytest.raises(SecAggError):
        known_tiers("aesni,armv8", TIERS)
