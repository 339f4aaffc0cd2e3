"""How many times more one system takes than another, over all cases of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from secagg.bench.rows import Figure, Row
from secagg.bench.units import NONE

__all__ = ["heads", "lines"]

Amount = Callable[[Row], Figure | None]


def _client(row: Row) -> Figure:
    return row.client.seconds


def _server(row: Row) -> Figure:
    return row.server.seconds


def _holder(row: Row) -> Figure | None:
    return None if row.holder is None else row.holder.seconds


def _central(row: Row) -> Figure:
    holder = _holder(row)
    return _server(row) if holder is None else _server(row) + holder


def _traffic(row: Row) -> Figure:
    return row.bytes_up + row.bytes_down


@dataclass(frozen=True)
class Ratio:
    """An amount of one system over the same of another."""

    text: str
    above: str
    below: str
    amount: Amount


RATIOS = (
    Ratio("client's time: HE ÷ SS", "he", "ss", _client),
    Ratio("client's bytes, up and down: HE ÷ SS", "he", "ss", _traffic),
    Ratio("HE's server and key holder ÷ SS's server", "he", "ss", _central),
    Ratio("client's time: shared key ÷ HE", "he-shared", "he", _client),
    Ratio("two trustees ÷ key holder", "he-threshold", "he", _holder),
    Ratio("client's time: phe, packed ÷ HE", "phe-packed", "he", _client),
    Ratio("key holder's: phe, packed ÷ HE", "phe-packed", "he", _holder),
    Ratio("server's: phe, packed ÷ HE", "phe-packed", "he", _server),
    Ratio("client's time: phe, per float ÷ packed", "phe-float", "phe-packed", _client),
    Ratio("key holder's: phe, per float ÷ packed", "phe-float", "phe-packed", _holder),
    Ratio("server's: phe, per float ÷ packed", "phe-float", "phe-packed", _server),
)


def heads(rows: Iterable[Row]) -> list[str]:
    """Return the heads of the columns: a length each."""
    return ["", *(f"d = {length:,}" for length in _lengths(rows))]


def lines(rows: Sequence[Row]) -> list[list[str]]:
    """Return a line for each ratio; its cells have the least and the most, and for which n."""
    return [
        [one.text, *(_cell(one, rows, length) for length in _lengths(rows))] for one in RATIOS
    ]


def _lengths(rows: Iterable[Row]) -> list[int]:
    return sorted({row.case.length for row in rows})


def _cell(ratio: Ratio, rows: Iterable[Row], length: int) -> str:
    amounts = {
        (row.system.name, row.case.clients): ratio.amount(row)
        for row in rows
        if row.case.length == length
    }
    found = []
    for (name, n), above in amounts.items():
        below = amounts.get((ratio.below, n))
        if name == ratio.above and above is not None and below is not None:
            mark = "" if above.measured and below.measured else "~"
            found.append((above.value / below.value, n, mark))
    ends = sorted({min(found), max(found)}) if found else []
    return " to ".join(f"{mark}{_times(value)} (n = {n})" for value, n, mark in ends) or NONE


def _times(value: float) -> str:
    return f"{value:,.0f}×" if value >= 9.95 else f"{value:.2g}×"
