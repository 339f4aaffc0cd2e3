"""Comparison of secret sharing (SS), encryption (HE) and one-shot sums, for docs/ss-or-he.md.

``python -m benches.compare`` measures the tables of that page with the fastest kernels,
and some with the fastest without AVX-512 IFMA. It takes some minutes on an idle
machine. After ``--write``, check that the prose of the page still fits its figures.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from secagg import _fast
from secagg._files import replace_file
from secagg.bench.cases import Case, Figure, Row
from secagg.bench.report import case_table, notes, per_float_table, saving
from secagg.bench.run import BUDGET, CLIENTS, LENGTHS, Comparison, compare, families, grid
from secagg.cli.output import progress
from secagg.kit.table import Column, Table, as_markdown, times
from secagg.kit.timing import INTERRUPTED, interruptible, undisturbed

DOC = Path(__file__).parent.parent / "docs" / "ss-or-he.md"
PICTURE, DOCUMENT = DOC.with_suffix(".svg"), DOC.with_suffix(".json")
MOVIELENS = Case(943, 33_640)  # its users, and 20 factors for each of 1,682 films
SHOWN = (Case(100, 1000), Case(100, 100_000), Case(500, 100_000), MOVIELENS)
WITHOUT_IFMA = "without IFMA"
LOWER = (Case(100, 100_000), MOVIELENS)
"""Cases that are measured without IFMA, too."""
WAYS = families("ss,he,one-shot")

AMOUNTS: dict[str, Callable[[Row], Figure | None]] = {
    "client": lambda row: row.client.seconds,
    "server": lambda row: row.server.seconds,
    "holder": lambda row: None if row.holder is None else row.holder.seconds,
    "central": lambda row: row.central.seconds,
    "traffic": lambda row: row.bytes_up + row.bytes_down,
}
RATIOS = (
    ("client's time: HE ÷ SS", "he", "ss", "client"),
    ("client's bytes, up and down: HE ÷ SS", "he", "ss", "traffic"),
    ("HE's server and key holder ÷ SS's server", "he", "ss", "central"),
    ("client's time: SS ÷ one-shot", "ss", "one-shot", "client"),
    ("client's bytes, up and down: SS ÷ one-shot", "ss", "one-shot", "traffic"),
    ("SS's server ÷ one-shot's server and three helpers", "ss", "one-shot", "central"),
    ("client's time: HE, trustees ÷ one-shot", "he-threshold", "one-shot", "client"),
    ("client's bytes: HE, trustees ÷ one-shot", "he-threshold", "one-shot", "traffic"),
    ("two trustees ÷ three helpers", "he-threshold", "one-shot", "holder"),
    ("server's: HE, trustees ÷ one-shot", "he-threshold", "one-shot", "server"),
    ("client's time: shared key ÷ HE", "he-shared", "he", "client"),
    ("two trustees ÷ key holder", "he-threshold", "he", "holder"),
    ("client's time: phe, packed ÷ HE", "phe-packed", "he", "client"),
    ("key holder's: phe, packed ÷ HE", "phe-packed", "he", "holder"),
    ("server's: phe, packed ÷ HE", "phe-packed", "he", "server"),
    ("client's time: phe, per float ÷ packed", "phe-float", "phe-packed", "client"),
    ("key holder's: phe, per float ÷ packed", "phe-float", "phe-packed", "holder"),
    ("server's: phe, per float ÷ packed", "phe-float", "phe-packed", "server"),
)


def ratio_table(rows: Sequence[Row]) -> Table:
    """Return a line per ratio: its least and greatest value at each length, with their n."""
    lengths = sorted({row.case.length for row in rows})
    columns = [Column(""), *(Column(f"d = {length:,}") for length in lengths)]
    known = {(row.system.name, row.case): row for row in rows}
    lines = [[text, *(_ends(known, d, *ratio) for d in lengths)] for text, *ratio in RATIOS]
    return Table(columns=columns, rows=lines)


def _ends(
    rows: Mapping[tuple[str, Case], Row], length: int, above: str, below: str, of: str
) -> str | None:
    found = []
    for (name, case), row in rows.items():
        if name == above and case.length == length and (below, case) in rows:
            over, under = AMOUNTS[of](row), AMOUNTS[of](rows[below, case])
            if over is not None and under is not None:
                mark = "" if over.measured and under.measured else "~"
                found.append((over.value / under.value, case.clients, mark))
    ends = sorted({min(found), max(found)}) if found else []
    return " to ".join(f"{mark}{times(value)} (n = {n})" for value, n, mark in ends) or None


def lower() -> Comparison:
    """Measure `LOWER` in a process with the fastest kernels that have no AVX-512 IFMA."""
    os.environ["SECAGG_TIER"] = next(
        tier for tier in _fast.TIERS if tier not in ("vaes512", "ifma")
    )
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(_compare, LOWER, per_float=False).result()


def _compare(cases: Sequence[Case], *, per_float: bool) -> Comparison:
    with interruptible(), progress(f"cases done, tier {_fast.TIER}", len(cases)) as show:
        return compare(WAYS, cases, show, budget=BUDGET, per_float=per_float)


def tables(comparison: Comparison, slower: Comparison) -> dict[str, str]:
    """Return the tables and notes as Markdown, by the names of their marks in the page."""
    parts = {
        "per float": as_markdown(per_float_table(comparison.per_float)),
        "ratios": as_markdown(ratio_table(comparison.rows)),
        "notes": "\n".join(f"- {note}" for note in notes(comparison)),
    }
    for case in SHOWN:
        rows = [row for row in comparison.rows if row.case == case]
        parts[_name(case)] = as_markdown(case_table(case, rows))
    for case in LOWER:
        rows = [row for row in slower.rows if row.case == case]
        parts[f"{_name(case)} {WITHOUT_IFMA}"] = as_markdown(case_table(case, rows))
    return parts


def _name(case: Case) -> str:
    return f"{case.clients} x {case.length}"


def written(page: str, parts: dict[str, str]) -> str:
    """Return the page with `parts` in place of the text between the marks of the same names."""
    for name, text in parts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, begun, rest = page.partition(begin)
        _, ended, after = rest.partition(end)
        assert begun, f"the page has no place for {name}"
        assert ended, f"the page has no end of {name}"
        page = f"{before}{begin}{text}\n{end}{after}"
    return page


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the tables, and write the page if asked to."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.compare",
        description="Measure and print the tables of docs/ss-or-he.md.",
        epilog="example: python -m benches.compare --write",
    )
    parser.add_argument("--write", action="store_true", help="write the page, .json and .svg")
    write = parser.parse_args(arguments).write
    save = saving(DOCUMENT, PICTURE) if write else None
    cases = [*grid(CLIENTS, LENGTHS), MOVIELENS]
    comparison = _compare(cases, per_float=True)
    slower = lower() if comparison.complete else comparison
    if not slower.complete:
        print("interrupted: nothing is written", file=sys.stderr)
        return INTERRUPTED
    with undisturbed():
        parts = tables(comparison, slower)
        for name, text in parts.items():
            print(f"## {name}\n\n{text}\n")
        if save is not None:
            save(comparison)
            replace_file(DOC, written(DOC.read_text(encoding="utf-8"), parts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
