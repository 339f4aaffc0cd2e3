"""Commands ``secagg stats``: studies over tables that stay at their sites."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from secagg import statistics
from secagg.cli.console import App, Json, command, counted
from secagg.cli.files import refuse_device
from secagg.cli.stats_http import JOIN, SERVE, join, serve
from secagg.cli.studies import (
    LEAST,
    START,
    STUDY,
    Data,
    MinCount,
    MinSites,
    PerParameter,
    PlanFile,
    policy_of,
    print_result,
    print_table,
    print_text,
    read_plan,
    read_study,
    require_scipy,
    site_of,
    tell_step,
    write_csv,
    write_html,
)
from secagg.errors import ParameterError
from secagg.kit.table import as_json as to_json

if TYPE_CHECKING:
    from secagg.statistics.simulation import Way

app = App(no_args_is_help=True, help="Plan, check and run statistics over many sites' tables.")

PLAN = (
    START
    + "secagg stats plan study.toml\n\nsecagg stats plan study.json --to toml > study.toml\n"
)
CHECK = (
    START + "secagg stats check study.toml patients.csv\n\n"
    "secagg stats check study.toml patients.parquet --ledger patients.ledger --json\n"
)
SIMULATE = (
    START + "secagg stats simulate study.toml north.csv south.csv west.csv\n\n"
    "secagg stats simulate study.toml north.csv south.csv west.csv --way one-shot --json\n"
)
REPORT = (
    START + "secagg stats report study/study.bin --html report.html --csv tables\n\n"
    "secagg stats report may/study.bin --earlier april/study.bin\n"
)


@app.command(epilog=PLAN)
def plan(
    plan: PlanFile,
    to: Annotated[
        str | None,
        typer.Option(metavar="toml|json", help="Print the plan itself, in this format."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Validate a plan, and print what everybody will learn, and the digest.

    Sites compare the digest before they join.
    """
    with command():
        agreed = read_plan(plan)
        if to is not None:
            if to not in ("toml", "json") or as_json:
                raise ParameterError(f"--to must be toml or json, without --json, not {to!r}")
            # a plan is UTF-8 also where the terminal is not
            typer.echo(
                (agreed.to_toml() if to == "toml" else agreed.to_json()).encode(), nl=False
            )
        elif as_json:
            described = {"plan": json.loads(agreed.to_json()), "digest": agreed.digest.hex()}
            typer.echo(to_json(described | {"words": str(agreed)}))
        else:
            print_text(f"{agreed}\n\nDigest of the plan:")
            typer.echo(agreed.digest.hex())


@app.command(epilog=CHECK)
def check(
    plan: PlanFile,
    data: Data,
    ledger: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ledger of the table, which is read only."),
    ] = None,
    min_count: MinCount = LEAST["min_count"],
    min_sites: MinSites = LEAST["min_sites"],
    records_per_parameter: PerParameter = LEAST["records_per_parameter"],
    as_json: Json = False,
) -> None:
    """Read a table as a site does, judge the plan, and print what would leave.

    Nothing is sent or written.
    """
    with command():
        policy = policy_of(min_count, min_sites, records_per_parameter)
        site = site_of(read_plan(plan), data, policy, statistics.Ledger(ledger))
        records, study = site.records, statistics.Study(site.plan)
        columns = {
            name: {
                "missing": int((points < 0).sum()),
                "below": int(records.below[name].sum()) if name in records.below else None,
                "above": int(records.above[name].sum()) if name in records.above else None,
                "unknown": records.unknown.get(name),
            }
            for name, points in records.points.items()
        }
        sums = defaultdict[str, list[str]](list)
        for field in study.step.fields:
            place, _, name = field.name.rpartition(".")
            part = site.plan.parts[int(place)].name if place else "in every step"
            sums[part].append(name)
        numbers = int(study.vector(records).size)
        if as_json:
            document = {"plan": site.plan.digest.hex(), "records": records.size}
            found = {"columns": columns, "numbers": numbers, "sums": sums}
            typer.echo(to_json(document | found))
            return
        print_text(f"The table fits the plan {site.plan.digest.hex()[:16]}.\n\n")
        rows = tuple((name, *counts.values()) for name, counts in columns.items())
        header = ("column", "missing", "below", "above", "unknown")
        print_table(f"{records.size:,} records", statistics.Table(header, rows))
        poor = [
            name
            for name, found in columns.items()
            if 5 * sum(found[kind] or 0 for kind in ("missing", "below", "above"))
            > records.size
        ]
        if poor:
            print_text(
                f"\nA fifth of the values or more is missing, outside or unknown in {poor}; "
                "compare the plan's ranges and lists with the table.\n"
            )
        lines = [f"- {name}: {', '.join(fields)}" for name, fields in sums.items()]
        print_text("\n".join([f"\nStep 1 sends {numbers:,} numbers, under masks:", *lines]))


@app.command(epilog=SIMULATE)
def simulate(
    plan: PlanFile,
    data: Annotated[
        list[Path],
        typer.Argument(metavar="DATA...", help="Tables, a CSV or Parquet file of each site."),
    ],
    way: Annotated[
        str,
        typer.Option(
            metavar="secagg|one-shot|paillier|plain",
            help="Way to sum; all ways give the same numbers, plain without protection.",
        ),
    ] = "secagg",
    min_count: MinCount = LEAST["min_count"],
    min_sites: MinSites = LEAST["min_sites"],
    records_per_parameter: PerParameter = LEAST["records_per_parameter"],
    as_json: Json = False,
) -> None:
    """Run a study over tables of this machine in one process, and print the result."""
    with command():
        agreed = read_plan(plan)
        policy = policy_of(min_count, min_sites, records_per_parameter)
        require_scipy()
        for path in data:
            refuse_device(path)
        if repeated := {str(path) for path in data if data.count(path) > 1}:
            raise ParameterError(f"{sorted(repeated)} are given twice; give each table once")
        result = statistics.simulate(
            agreed,
            {str(path): path for path in data},
            way=cast("Way", way),
            policy=policy,
            progress=lambda step, numbers: tell_step(step, numbers, counted(len(data), "site")),
        )
        print_result(result, json=as_json)


@app.command(epilog=REPORT)
def report(
    study: Annotated[
        Path, typer.Argument(metavar="STUDY.BIN", help=f"{STUDY} of secagg stats serve.")
    ],
    earlier: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="STUDY.BIN",
            help="Study over the same records whose result was published: hidden numbers of "
            "both results stay hidden. May be repeated, in the order of publication.",
        ),
    ] = None,
    page: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the tables as a page.")
    ] = None,
    tables: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FOLDER", help="Write a CSV file for each table."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Print the result of a stored study anew, and write its tables."""
    with command():
        known = read_study(study)
        before = [read_study(path) for path in earlier or ()]
        require_scipy()
        result = statistics.Result.of(known, before)
        if page is not None:
            write_html(page, result)
        if tables is not None:
            write_csv(tables, result)
        print_result(result, json=as_json)


app.command(epilog=SERVE)(serve)
app.command(epilog=JOIN)(join)
