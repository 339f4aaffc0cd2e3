"""A comparison as tables with their notes, as JSON, and in files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from secagg.bench.cases import Case, Row
from secagg.bench.per_float import PerFloat, owners_gain
from secagg.bench.run import Comparison
from secagg.bench.ss import CORRUPT, DROPOUT
from secagg.bench.table import (
    NONE,
    Column,
    Table,
    as_json,
    duration,
    micro,
    print_table,
    volume,
    write_atomically,
)
from secagg.bench.timing import machine
from secagg.errors import ParameterError

VERSION = 1

CASE_COLUMNS = (
    Column(""),
    Column("client", duration),
    Column("server", duration),
    Column("key\nholder", duration),
    Column("client\nsends", volume),
    Column("client\nreceives", volume),
    Column("holder\nreceives", volume),
    Column("peak\nMB"),
)
"""In two lines where that is narrower."""

FLOAT_COLUMNS = (
    Column(""),
    Column("key"),
    Column("secagg", micro),
    Column("phe", micro),
    Column("ratio", "{:,.0f}×".format),
    Column("two threads", "{:.2f}×".format),
)

SYSTEM_COLUMNS = (
    Column(""),
    Column("messages", left=True),
    Column("who can read a vector", left=True),
    Column("who vanishes", left=True),
)


def case_table(case: Case, rows: Sequence[Row]) -> Table:
    """Return the measurements of a case; memory is of client, server and key holder."""
    cells = []
    for row in rows:
        parties = [load for load in (row.client, row.server, row.holder) if load is not None]
        memory = [NONE if one.memory is None else f"{one.memory / 1e6:.0f}" for one in parties]
        cells.append(
            (
                row.system.label,
                row.client.seconds.cell,
                row.server.seconds.cell,
                None if row.holder is None else row.holder.seconds.cell,
                row.bytes_up.cell,
                row.bytes_down.cell,
                None if row.holder_bytes_in is None else row.holder_bytes_in.cell,
                "/".join(memory),
            )
        )
    title = f"n = {case.clients:,} vectors of d = {case.length:,}"
    return Table(title=title, columns=CASE_COLUMNS, rows=cells, caption=_settings(rows))


def per_float_table(measured: Iterable[PerFloat]) -> Table:
    """Return the operations of Paillier, a float at a time."""
    rows = [
        (one.operation, f"{one.bits} bits", one.seconds, one.peer, one.ratio, one.speed_up)
        for one in measured
    ]
    title = "Paillier per float, slots of 32 bits, one core"
    return Table(title=title, columns=FLOAT_COLUMNS, rows=rows)


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield the remarks that the figures need."""
    yield from _on_sums(comparison.rows)
    if comparison.per_float:
        yield from _on_floats(comparison.per_float)
    yield from (f"{remedy}." for remedy in comparison.absent.values())
    yield ", ".join(f"{name} {value}" for name, value in machine().items()) + "."


def print_comparison(comparison: Comparison) -> None:
    """Print the tables case by case, then the systems and the remarks."""
    cases: dict[Case, list[Row]] = {}
    for row in comparison.rows:
        cases.setdefault(row.case, []).append(row)
    systems = {row.system.name: row.system for row in comparison.rows}.values()
    tables = [case_table(case, rows) for case, rows in cases.items()]
    described = [(one.label, str(one.messages), one.decrypts, one.dropouts) for one in systems]
    tables.append(Table(columns=SYSTEM_COLUMNS, rows=described))
    if comparison.per_float:
        tables.append(per_float_table(comparison.per_float))
    tables[-1] = replace(tables[-1], notes=tuple(notes(comparison)))
    for table in tables:
        print_table(table)


def comparison_document(comparison: Comparison) -> dict[str, object]:
    """Return the comparison for `as_json`; scaled figures name their sample."""
    systems = {row.system.name: row.system for row in comparison.rows}
    return {
        "version": VERSION,
        "machine": machine(),
        "budget_seconds": comparison.budget,
        "complete": comparison.complete,
        "systems": {
            name: {
                "label": system.label,
                "messages": system.messages,
                "dropouts": system.dropouts,
                "decrypts": system.decrypts,
            }
            for name, system in systems.items()
        },
        "per_float": comparison.per_float,
        "rows": comparison.rows,
        "absent": comparison.absent,
    }


def prepare(folder: str) -> Callable[[Comparison], None]:
    """Make the folder, and return a function that saves a comparison there; see `saving`.

    Raises
    ------
    ParameterError
        No folder is named, or it cannot be made.
    """
    if not folder:
        raise ParameterError("--out is empty: name a folder, or leave it out")
    path = Path(folder)
    return saving(path / "compare.json", path / "compare.png")


def saving(document: Path, picture: Path) -> Callable[[Comparison], None]:
    """Try the two files, and return a function that writes a comparison to them.

    Errors should show before minutes of measuring.

    Raises
    ------
    MissingExtra
        matplotlib is not installed.
    ParameterError
        A file cannot be written.
    """
    from secagg.bench.picture import canvas, png  # needs matplotlib, other commands do not

    for path in (document, picture):
        _try(path)

    def save(comparison: Comparison) -> None:
        write_atomically(document, as_json(comparison_document(comparison)) + "\n")
        if comparison.rows:
            write_atomically(picture, png(canvas(comparison.rows)))

    return save


def _try(path: Path) -> None:
    """Open the file for writing, and leave everything as it was but for its folder."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        there = path.exists()
        path.open("ab").close()
        if not there:
            path.unlink()
    except OSError as error:
        raise ParameterError(f"cannot write {path}: {error.strerror}; choose another") from None


def _settings(rows: Iterable[Row]) -> str:
    """Return the systems' parameters, and a client's time once per key."""
    each = []
    for row in rows:
        once = f", once {duration(row.setup_seconds)}" if row.setup_seconds else ""
        each.append(f"{row.system.label}: {row.setting}{once}")
    return ". ".join(each) + "."


def _on_sums(rows: list[Row]) -> Iterator[str]:
    if not all(row.measured for row in rows):
        yield "~: scaled in proportion from a sample, whose size the JSON document has."
    yield (
        "–: there is no such party; as memory, it is not known, because the party has done "
        "only a sample of the work."
    )
    yield (
        "Times are of the processor. A client's is the median of all that were run, but for "
        "the first of those that encrypt."
    )
    yield (
        "Peak MB: the memory of the process of client/server/key holder when it was highest, "
        "beyond the library itself."
    )
    if any(row.system.family == "ss" for row in rows):
        yield (
            "SS: a client shares keys with k others, t of whom can rebuild them. The graph "
            f"allows {CORRUPT:.0%} of all to collude with the server and {DROPOUT:.0%} to "
            "vanish; these do vanish, as soon as they have shared keys, when it costs the "
            "server most."
        )
    if any(row.setup_seconds for row in rows):
        yield (
            "HE: a client encodes, packs and encrypts; the server loads what it is sent, which "
            "checks every ciphertext, adds, and blinds the total; the key holder loads, "
            "decrypts and unpacks."
        )
        yield (
            "Once: what a client takes once for each key, to load it and make tables of "
            "powers, which is not in the client's time."
        )
    fewer = [row for row in rows if row.clients_run < row.case.clients]
    if fewer:
        few = max(row.clients_run for row in fewer)
        yield f"SS runs all clients; the others run {few}, and what they send is added again."


def _on_floats(measured: list[PerFloat]) -> Iterator[str]:
    for bits, gain in owners_gain(measured).items():
        yield f"The owner of a key of {bits} bits encrypts {gain:.1f}× as fast as others."
    yield (
        "Two threads: how many times less time passes with two than with one, which means "
        "something only where nothing else is running."
    )
    if any(one.peer is not None for one in measured):
        yield (
            "phe has one way to encrypt, measured once for each key. It uses gmpy2's copy of "
            "GMP, which may run generic code on processors newer than it."
        )
