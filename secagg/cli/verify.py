"""Command ``secagg verify``: the records beside the sums, and the chain of the records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from msgspec import to_builtins

from secagg._printable import printable
from secagg.cli.console import Json, command, counted, examples
from secagg.cli.records import Chain, Record
from secagg.errors import ParameterError
from secagg.kit.table import as_json as to_json

ALTERED = 2
"""Exit status if a file was altered, is missing, or is in no record."""
_REMEDY = "give the --out of secagg serve or of secagg collect close"
EXAMPLES = examples("secagg verify sums", "secagg verify sums --period 2026-03")


def verify(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="Folder of secagg serve --out, or of secagg collect close."
        ),
    ],
    period: Annotated[
        str | None,
        typer.Option(
            help="Print the records of one period only, such as 2026-03, or of the sum with a "
            "number.",
            show_default="all",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the records beside the sums, and print who was in each sum, and who was missing.

    The exit status is 2 if a file was altered, is missing, or is in no record. The last hash
    stands for all records: note the hash elsewhere, since a folder cannot show that the last
    records were deleted with their sums.
    """
    with command():
        if not folder.is_dir():
            raise ParameterError(f"{folder} is no folder; {_REMEDY}")
        chain = Chain.read(folder)
        chain.check_files()
        if not chain.records and not chain.faults:
            raise ParameterError(f"{folder} has no records; {_REMEDY}")
        shown = chain.records
        if period is not None:
            shown = [record for record in shown if record.called == period]
            if not shown and not chain.faults:
                raise ParameterError(f"no record in {folder} is of {period!r}")
        if as_json:
            document = {"folder": str(folder), "head": chain.head.hex()}
            typer.echo(to_json(document | {"faults": chain.faults, "records": _plain(shown)}))
        else:
            for record in shown:
                typer.echo("\n".join(map(printable, _lines(record))))
            if not chain.faults:
                typer.echo(f"{counted(len(chain.records), 'record')}, all true")
                typer.echo(f"last hash {chain.head.hex()}")
        for name, fault in sorted(chain.faults.items()):
            typer.echo(f"secagg: {printable(str(folder / name))}: {fault}", err=True)
        if chain.faults:
            raise typer.Exit(ALTERED)


def _plain(records: list[Record]) -> object:
    return [to_builtins(record) for record in records]


def _lines(record: Record) -> Iterator[str]:
    """Yield the lines of a record: the sum, and each missing client with the reason."""
    if record.outcome == "failed":
        yield f"{record.called}: no sum of {record.registered} clients"
        yield f"  {record.why}"
    else:
        of = "" if record.outcome == "full" else f" of {record.registered}"
        yield f"{record.called}: sum of {len(record.clients)}{of} vectors"
    if record.spent is not None:
        yield f"  {record.spent}"
    elif record.noise is not None:
        yield f"  noise of {record.noise:g} steps"
    if record.spent is not None or record.noise is not None:
        yield f"  against {record.parameters.get('against', 'unknown parties')}"
    for one in record.missing:
        yield f"  missing {one}"
    for verdict in record.verdicts:
        yield f"  verdict on {verdict.client}: {verdict.kind}"
        yield f"    {verdict.file}"
    for fault in record.helpers_failed:
        yield f"  helper {fault.helper} failed in {fault.phase}, {fault.check}"
    if record.resumed:
        yield "  begun by an earlier process, whose attempts are not known"
