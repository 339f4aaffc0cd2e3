"""The measuring kit: timers, tables, JSON, files, and the rule for Ctrl-C."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest

from secagg.errors import MissingExtra
from secagg.kit import timing
from secagg.kit.table import (
    Column,
    Strong,
    Table,
    Value,
    as_json,
    as_markdown,
    as_text,
    duration,
    number,
    print_table,
    times,
    volume,
)

TABLE = Table(
    title="a [title]",
    columns=(Column(""), Column("key\nholder", duration), Column("RMSE"), Column("met?")),
    rows=(
        ("a|b", Value(1.5, scaled=True), Value(0.8914, 0.0021), "yes"),
        ("c", None, 0.9, Strong("no")),
    ),
    caption="a caption",
    notes=("a note",),
)


@pytest.fixture(autouse=True)
def _ctrl_c() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_markdown_has_cells_caption_and_notes() -> None:
    assert as_markdown(TABLE).splitlines() == [
        "|  | key holder | RMSE | met? |",
        "| --- | --- | --- | --- |",
        "| a\\|b | ~1.5 s | 0.8914 ± 0.0021 | yes |",
        "| c | – | 0.9000 | **no** |",
        "",
        "a caption",
        "",
        "- a note",
    ]


def test_text_has_the_same_cells_without_marks() -> None:
    title, *_, first, second, caption, blank, note = as_text(TABLE).splitlines()
    assert (title, caption, blank, note) == ("a [title]", "a caption", "", "a note")
    assert first.split() == ["a|b", "~1.5", "s", "0.8914", "±", "0.0021", "yes"]
    assert second.split() == ["c", "–", "0.9000", "no"]


def test_without_rich_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.table", None)
    with pytest.raises(MissingExtra, match="pip install rich"):
        print_table(TABLE)


@pytest.mark.parametrize(
    ("value", "like", "text"),
    [
        (3.0, None, "3"),
        (1234.5, None, "1,234"),
        (123.45, None, "123.5"),
        (0.12345, None, "0.1235"),
        (0.00012, None, "1.2e-04"),
        (0.0, 0.001, "0.0000"),
    ],
)
def test_number_takes_the_decimals_of_its_like(value, like, text):
    assert number(value, like) == text


def test_times_have_two_digits_below_ten_and_units_write_infinity() -> None:
    shown = [times(ratio) for ratio in (0.123, 9.94, 9.95, 1234.5)]
    assert shown == ["0.12×", "9.9×", "10×", "1,234×"]
    assert (duration(math.inf), volume(math.nan)) == ("inf h", "nan GB")


@dataclass
class _Pair:
    a: int
    b: object


class _Named:
    def document(self) -> dict[str, object]:
        return {"name": 2}


def test_json_writes_dataclasses_by_fields_or_document() -> None:
    assert json.loads(as_json([_Pair(1, _Named())])) == [{"a": 1, "b": {"name": 2}}]
    with pytest.raises(ValueError, match="JSON"):
        as_json({"a": math.inf})
    with pytest.raises(TypeError):
        as_json(object())


def test_in_turn_warms_up_and_takes_medians(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, order = [0.0], []
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(timing.time, "process_time", lambda: 2 * clock[0])
    durations = {"a": iter([9.0, 1.0, 5.0, 2.0]), "b": iter([9.0, 3.0, 3.0, 4.0])}

    def call(name: str) -> None:
        order.append(name)
        clock[0] += next(durations[name])

    taken = timing.in_turn([lambda: call("a"), lambda: call("b")], 3)
    assert taken == [timing.Taken(4.0, 2.0), timing.Taken(6.0, 3.0)]
    assert order == ["a", "b"] * 4


def strike() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_interruptible_handles_one_ctrl_c_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second signal at once is ignored; a later one is handled: the first may be lost."""
    clock = [100.0]
    monkeypatch.setattr(timing.time, "monotonic", lambda: clock[0])
    with timing.interruptible():
        with pytest.raises(KeyboardInterrupt):
            strike()
        clock[0] += 0.5
        strike()
        clock[0] += 0.6
        with pytest.raises(KeyboardInterrupt):
            strike()


def test_undisturbed_ignores_every_ctrl_c() -> None:
    with timing.interruptible(), timing.undisturbed():
        strike()


@pytest.mark.parametrize("strikes", [0, 1])
def test_interruptible_restores_the_handler(strikes: int) -> None:
    before = signal.getsignal(signal.SIGINT)
    with suppress(KeyboardInterrupt), timing.interruptible():
        assert signal.getsignal(signal.SIGINT) is not before
        for _ in range(strikes):
            strike()
    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_no_handler_is_installed() -> None:
    before, within = signal.getsignal(signal.SIGINT), []

    def command() -> None:
        with timing.interruptible():
            within.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=command)
    thread.start()
    thread.join()
    assert within == [before]


def test_callers_handler_is_kept() -> None:
    def theirs(*_: object) -> None: ...

    signal.signal(signal.SIGINT, theirs)
    with timing.interruptible():
        assert signal.getsignal(signal.SIGINT) is theirs
    assert signal.getsignal(signal.SIGINT) is theirs
