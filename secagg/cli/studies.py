"""Files and texts of ``secagg stats``: plans, studies, results."""

from __future__ import annotations

import csv
import html
import io
import json
import os
import re
import textwrap
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from secagg import statistics
from secagg._files import replace_file
from secagg.cli.files import checked, read, refuse_device
from secagg.cli.lines import fact
from secagg.cli.suites import check_helpers
from secagg.errors import ParameterError, needing
from secagg.kit.table import as_json
from secagg.oneshot import OneShotParams
from secagg.protocol import RoundParams
from secagg.protocol.shape import Security
from secagg.protocol.suites import SuiteName

if TYPE_CHECKING:
    from secagg.privacy import PrivacyLedger
    from secagg.statistics import Ledger, Plan, Result, Site, SitePolicy, Study, Table

RESULT, STUDY = "result.json", "study.bin"
"""Files of a study that has ended."""
_LONGEST = 60
"""Characters of a table's name in the name of a file."""


LEAST = {"min_count": 5, "min_sites": 3, "records_per_parameter": 5}
"""Demands of a `SitePolicy`, whose import would slow down every command."""
START = "\n[bold]Examples[/bold]\n\n"
PlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN", help="Plan of the study, in TOML or JSON.")
]
Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="Table of this site, a CSV or Parquet file.")
]
MinCount = Annotated[
    int, typer.Option(help="Least min_count of a plan that this site accepts, in records.")
]
MinSites = Annotated[
    int, typer.Option(help="Least min_sites of a plan that this site accepts, in sites.")
]
PerParameter = Annotated[
    int,
    typer.Option(help="Least records_per_parameter of a plan that this site accepts."),
]


def read_plan(path: Path) -> Plan:
    """Return the plan of a file: JSON if the name ends in .json, else TOML."""
    kind = statistics.Plan
    parse = kind.from_json if path.suffix.lower() == ".json" else kind.from_toml

    def of(content: bytes) -> Plan:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise ParameterError("the plan is no UTF-8 text; save the file in UTF-8") from None
        # of Windows
        return parse(text.replace("\r\n", "\n"))

    return checked(path, of, read(path))


def read_study(path: Path) -> Study:
    """Return the study of a file that `secagg stats serve` wrote."""
    return checked(path, statistics.Study.of, read(path))


def first_params(
    plan: Plan,
    n: int,
    name: str,
    run: bytes,
    helpers: Collection[tuple[bytes, bytes]],
    security: Security,
    suite: SuiteName | None,
) -> RoundParams | OneShotParams:
    """Return the parameters of the first step, so that an error is shown before any site waits.

    `run` is the name of the one-shot sums, and `helpers` are none in four exchanges.
    """
    # late, since every command imports this module
    from secagg.statistics.sessions import one_shot_params, round_params

    study = statistics.Study(plan)
    if not helpers:
        return round_params(study, n, name.encode(), security=security, suite=suite)
    first = one_shot_params(study, n, run, helpers, security=security, every=False)
    check_helpers(suite, first)
    return first


def open_ledger(path: Path) -> Ledger:
    """Return a ledger, which can be written when the first step comes."""
    folder = path.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise ParameterError(f"--ledger {path} cannot be written; take another folder")
    return statistics.Ledger(path)


def require_scipy() -> None:
    """Raise `MissingExtra` without the package that computes results."""
    with needing("the result of a study", "'secagg[statistics]'", "scipy"):
        import scipy  # noqa: F401


def write_study(out: Path, study: Study) -> None:
    """Write all sums of a study, for this user only: the sums of few records are among them."""
    replace_file(out / STUDY, study.message(), private=True)


def print_text(text: str) -> None:
    """Print lines, each wrapped at the width of the terminal."""
    width = Console().width
    for line in text.splitlines():
        hang = "  " * line.startswith("- ")
        typer.echo(textwrap.fill(line, width, subsequent_indent=hang) if line else "")


def print_table(name: str, table: Table) -> None:
    """Print a table below a name, at the width of the terminal."""
    from secagg.statistics.result import text_of

    typer.echo(text_of(name, table, Console().width))


def print_result(result: Result, *, json: bool) -> None:
    """Print a result as one JSON document, or as tables at the width of the terminal."""
    if json:
        typer.echo(as_json(document_of(result)))
    else:
        typer.echo(result.text(Console().width))


def document_of(result: Result) -> object:
    """Return the plain values of a result."""
    return json.loads(result.to_json())


def write_html(path: Path, result: Result) -> None:
    """Write a result as a page."""
    title = html.escape(result.plan.name)
    head = f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{title}</title></head>'
    body = f"<body><h3>{title}</h3>{result._repr_html_()}</body></html>\n"
    _write(path, head + body)


def write_csv(folder: Path, result: Result) -> list[Path]:
    """Write each table of a result to a CSV file; return the paths."""
    paths = list[Path]()
    for number, name in enumerate(result.names, start=1):
        short = re.sub(r"[^\w]+", "-", name)[:_LONGEST].strip("-")
        paths.append(folder / f"{number:02}-{short}.csv")
        content, table = io.StringIO(), result[name]
        csv.writer(content, lineterminator="\n").writerows([table.header, *table.rows])
        _write(paths[-1], content.getvalue())
    return paths


def _write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, content)


def site_of(
    plan: Plan,
    data: Path,
    policy: SitePolicy,
    ledger: Ledger,
    spending: PrivacyLedger | None = None,
) -> Site:
    """Return a site, after the whole table was read and judged."""
    refuse_device(data)
    return statistics.Site(data, plan, policy=policy, ledger=ledger, spending=spending)


def policy_of(min_count: int, min_sites: int, records_per_parameter: int) -> SitePolicy:
    """Return the demands of a site."""
    return statistics.SitePolicy(
        min_count=min_count,
        min_sites=min_sites,
        records_per_parameter=records_per_parameter,
    )


def tell_step(step: int, numbers: int, sites: str) -> None:
    """Print a line of progress."""
    fact(f"step {step}: {numbers:,} numbers, {sites}")
