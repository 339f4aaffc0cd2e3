"""Report of a comparison: tables with notes, a JSON document, and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby
from pathlib import Path

from secagg._files import replace_file
from secagg.bench.cases import Case, Row
from secagg.bench.per_float import PerFloat, owners_gain
from secagg.bench.run import Comparison
from secagg.bench.ss import DROPOUT
from secagg.errors import ParameterError
from secagg.graph.graph import CORRUPT
from secagg.kit import table as kit
from secagg.kit.table import NONE, Column, Table, duration, volume
from secagg.kit.timing import machine

VERSION = 1

CASE_COLUMNS = (  # heads are in two lines if that is narrower
    Column(""),
    *(Column(head, duration) for head in ("client", "server", "key\nholder")),
    *(
        Column(head, volume)
        for head in ("client\nsends", "client\nreceives", "holder\nreceives")
    ),
    Column("peak\nMB"),
)
FLOAT_COLUMNS = (
    *(Column(""), Column("key"), Column("secagg", kit.micro), Column("phe", kit.micro)),
    Column("ratio", "{:,.0f}×".format),
    Column("two threads", "{:.2f}×".format),
)
SYSTEM_COLUMNS = (
    Column(""),
    *(Column(head, left=True) for head in ("messages", "can read a vector", "dropouts")),
)


def case_table(case: Case, rows: Sequence[Row]) -> Table:
    """Return the table of a case; the last column has client/server/key holder memory."""
    cells, settings = [], []
    for row in rows:
        parties = [load for load in (row.client, row.server, row.holder) if load is not None]
        memory = [NONE if one.memory is None else f"{one.memory / 1e6:.0f}" for one in parties]
        holder = None if row.holder is None else row.holder.seconds
        sent = (row.bytes_up, row.bytes_down, row.holder_bytes_in)
        figures = (row.client.seconds, row.server.seconds, holder, *sent)
        values = [None if one is None else one.cell for one in figures]
        cells.append((row.system.label, *values, "/".join(memory)))
        once = f", once {duration(row.setup_seconds)}" if row.setup_seconds else ""
        settings.append(f"{row.system.label}: {row.setting}{once}")
    return Table(
        title=f"n = {case.clients:,} vectors of d = {case.length:,}",
        columns=CASE_COLUMNS,
        rows=cells,
        caption=". ".join(settings) + ".",
    )


def per_float_table(measured: Iterable[PerFloat]) -> Table:
    """Return the table of Paillier's operations per float."""
    rows = [
        (one.operation, f"{one.bits} bits", one.seconds, one.phe, one.ratio, one.speed_up)
        for one in measured
    ]
    title = "Paillier per float, slots of 32 bits, one core"
    return Table(title=title, columns=FLOAT_COLUMNS, rows=rows)


def print_comparison(comparison: Comparison) -> None:
    """Print a table for each case, then a table of the systems, and the notes."""
    by_case = groupby(comparison.rows, key=lambda row: row.case)
    tables = [case_table(case, list(rows)) for case, rows in by_case]
    systems = {row.system.name: row.system for row in comparison.rows}.values()
    described = [(one.label, str(one.messages), one.decrypts, one.dropouts) for one in systems]
    tables.append(Table(columns=SYSTEM_COLUMNS, rows=described))
    if comparison.per_float:
        tables.append(per_float_table(comparison.per_float))
    tables[-1] = replace(tables[-1], notes=tuple(notes(comparison)))
    for table in tables:
        kit.print_table(table)


def comparison_document(comparison: Comparison) -> dict[str, object]:
    """Return the comparison for `table.as_json`; each scaled figure has its sample."""
    systems = {row.system.name: asdict(row.system) for row in comparison.rows}
    versions = {"phe": "none"}
    with suppress(PackageNotFoundError):
        versions["phe"] = version("phe")
    # without `family`, which only the command's option --compare uses
    keys = ("label", "messages", "dropouts", "decrypts")
    return {
        "version": VERSION,
        "machine": machine() | versions,
        "budget_seconds": comparison.budget,
        "complete": comparison.complete,
        "systems": {name: {key: one[key] for key in keys} for name, one in systems.items()},
        "per_float": comparison.per_float,
        "rows": comparison.rows,
        "absent": comparison.absent,
    }


def saving(document: Path, picture: Path) -> Callable[[Comparison], None]:
    """Check now that two files can be written, and return a function that writes both later.

    Raises
    ------
    MissingExtra
        matplotlib is not installed.
    ParameterError
        A file cannot be written.
    """
    # first: without matplotlib, the kit's error has the remedy
    from secagg.kit.picture import svg

    # isort: split
    from secagg.bench.picture import canvas

    for path in (document, picture):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            there = path.exists()
            # to append, so that an earlier file stays as it is until there are results
            path.open("ab").close()
            if not there:
                path.unlink()
        except OSError as error:
            reason = f"{error.strerror}; choose another"
            raise ParameterError(f"cannot write {path}: {reason}") from None

    def save(comparison: Comparison) -> None:
        text = kit.as_json(comparison_document(comparison))
        replace_file(document, f"{text}\n")
        # Ctrl-C may come before the first row
        if comparison.rows:
            replace_file(picture, svg(canvas(comparison.rows)))

    return save


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield the notes that explain the figures of a comparison."""
    rows, floats = comparison.rows, comparison.per_float
    one_shot = any(row.system.family == "one-shot" for row in rows)
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
            "SS: a client shares keys with k others, t of which can rebuild them. The graph "
            f"allows {CORRUPT:.0%} of all to collude with the server and {DROPOUT:.0%} to drop "
            "out. These drop out after sharing keys, when it costs the server most."
        )
    if any(row.setup_seconds for row in rows):
        yield (
            "HE: a client encodes, packs and encrypts. The server validates every ciphertext, "
            "adds, and blinds the total; the key holder loads, decrypts and unpacks."
        )
        yield (
            "Once: a client's time once for each key, to load it and make tables of powers. "
            "It is not in the client's time."
        )
    if one_shot:
        yield (
            "One-shot: the helpers stand in the key holder's place, their times and bytes "
            "added up; memory is that of the largest. All clients that report are run."
        )
    fewer = [row.clients_run for row in rows if row.clients_run < row.case.clients]
    if fewer:
        whole = "SS and one-shot run" if one_shot else "SS runs"
        yield (
            f"{whole} all clients; the others run {max(fewer)}, whose messages are added again."
        )
    for bits, gain in owners_gain(floats).items():
        yield f"The owner of a key of {bits} bits encrypts {gain:.1f}× as fast as others."
    if floats:
        yield (
            "Two threads: wall-clock time with one thread ÷ with two, meaningful only if "
            "nothing else is running."
        )
    if any(one.phe is not None for one in floats):
        yield (
            "phe has one way to encrypt, measured once for each key. It uses gmpy2's copy of "
            "GMP, which may run generic code on processors newer than it."
        )
    yield from (f"{remedy}." for remedy in comparison.absent.values())
    yield ", ".join(f"{name} {value}" for name, value in machine().items()) + "."
