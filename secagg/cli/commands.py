"""The command ``secagg``: results on stdout, progress and errors on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

from secagg import graph
from secagg.bench.document import comparison_document
from secagg.bench.run import BUDGET, CLIENTS, LENGTHS, Comparison, compare, families, grid
from secagg.bench.save import prepare
from secagg.bench.trial import peak_memory, run
from secagg.cli.estimate import estimate
from secagg.encoding import FixedPoint
from secagg.errors import SecAggError
from secagg.graph.assumptions import to_adversary
from secagg.protocol import ClientPolicy, RoundParams
from secagg.protocol.traffic import client_traffic

try:
    import typer
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from secagg.bench.table import print_comparison
    from secagg.cli.report import params_document, print_params, print_trial, trial_document
except ModuleNotFoundError as error:
    missing = str(error.name).partition(".")[0]
    if missing not in ("typer", "rich"):
        raise
    print(
        f"secagg: the command line needs {missing}: pip install 'secagg[cli]'",
        file=sys.stderr,
    )
    raise SystemExit(2) from None

__all__ = ["app", "main"]

INTERRUPTED = 130  # what shells report for a command that Ctrl-C ended

app = typer.Typer(
    help="Secure aggregation: what a round takes, and one to try.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; the entry point of the console script."""
    app()


Clients = Annotated[int, typer.Option(help="n, the clients that take part.")]
Corrupt = Annotated[
    float, typer.Option(help="The largest fraction of them that colludes with the server.")
]
Dropout = Annotated[float, typer.Option(help="The largest fraction that vanishes.")]
Length = Annotated[int, typer.Option(help="d, the elements of a vector.")]
Clip = Annotated[float, typer.Option(help="The largest absolute value of an element.")]
ModulusBits = Annotated[
    int | None,
    typer.Option(
        help="b of the modulus 2^b, and the bits an element takes on the wire.",
        show_default="32, or what the sum needs",
    ),
]
Sigma = Annotated[
    int, typer.Option(help="A client is exposed with probability 2^-sigma at most.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON document in place of the table.")
]

PARAMS_EXAMPLES = """
[bold]Examples[/bold]

secagg params --clients 1000 --corrupt 0.05 --dropout 0.05

secagg params --clients 10000 --corrupt 0.33 --dropout 0.1 --length 1000000 --json
"""

SIMULATE_EXAMPLES = """
[bold]Examples[/bold]

secagg simulate --clients 100 --length 100000 --dropout 0.1

secagg simulate --clients 1000 --length 10000 --neighbours 40 --threshold 22

secagg simulate --clients 50 --neighbours 0  [dim]# everyone shares with everyone[/dim]
"""

BENCH_EXAMPLES = """
[bold]Examples[/bold]

secagg bench --clients 100 --length 10000 --no-per-float  [dim]# one case: half a minute[/dim]

secagg bench --compare ss,he --out runs/compare  [dim]# all of them, and a picture[/dim]

secagg bench --clients 943 --length 33640 --json  [dim]# as many as MovieLens 100K has[/dim]
"""


@app.command(epilog=PARAMS_EXAMPLES)
def params(
    clients: Clients,
    corrupt: Corrupt = 0.05,
    dropout: Dropout = 0.05,
    security: Annotated[
        str,
        typer.Option(
            metavar="semi-honest|semi-malicious",
            help="The server: follows the protocol, or later asks different clients for "
            "different kinds of share.",
        ),
    ] = "semi-honest",
    length: Length = 100_000,
    clip: Clip = 8.0,
    modulus_bits: ModulusBits = None,
    sigma: Sigma = 40,
    eta: Annotated[
        int, typer.Option(help="The round fails with probability 2^-eta at most.")
    ] = 30,
    as_json: Json = False,
) -> None:
    """Find neighbours and threshold, and say what a round costs.

    Times are of this machine's primitives, measured now; bytes are those of a client that
    stays to the end and loses nobody, who has the most.
    """
    with _errors_in_one_line():
        server = to_adversary(security)
        found = graph.recommend(clients, corrupt, dropout, server, sigma, eta)
        k, t = found.neighbours, found.threshold
        chosen = _round(clients, t, k, length, clip, modulus_bits)
        traffic = client_traffic(chosen, client_id=clients - 1)
        costs = (found, chosen, traffic, estimate(chosen, int(dropout * clients)))
        if as_json:
            typer.echo(json.dumps(params_document(*costs), indent=2))
        else:
            print_params(*costs, server)


@app.command(epilog=SIMULATE_EXAMPLES)
def simulate(
    clients: Clients = 100,
    length: Length = 10_000,
    neighbours: Annotated[
        int | None,
        typer.Option(
            help="With how many others each shares keys: an even number, or 0 for all.",
            show_default="what `secagg params` finds for the same options",
        ),
    ] = None,
    threshold: Annotated[
        int | None,
        typer.Option(
            help="How many holders it takes to rebuild a client's secrets.",
            show_default="what `secagg params` finds; with --neighbours two thirds",
        ),
    ] = None,
    dropout: Dropout = 0.05,
    corrupt: Corrupt = 0.05,
    sigma: Sigma = 40,
    clip: Clip = 8.0,
    modulus_bits: ModulusBits = None,
    seed: Annotated[int, typer.Option(help="Of the vectors and the dropouts.")] = 0,
    as_json: Json = False,
) -> None:
    """Run one round on random vectors in this process, and check that its sum is exact.

    Of the clients, the fraction --dropout vanishes, each in a random phase.
    """
    with _errors_in_one_line():
        if neighbours is None:
            found = graph.recommend(clients, corrupt, dropout, sigma=sigma)
            k, t = found.neighbours, found.threshold
        else:
            k = neighbours or None
            t = -(-2 * (clients if k is None else k + 1) // 3)
        t = t if threshold is None else threshold
        chosen = _round(clients, t, k, length, clip, modulus_bits)
        policy = ClientPolicy(corrupt=corrupt, dropout=dropout, sigma=sigma)
        with _progress("clients", clients) as show:
            result = run(chosen, policy, dropout, seed, show)
        memory = peak_memory()
        if as_json:
            typer.echo(json.dumps(trial_document(result, chosen, memory), indent=2))
        else:
            print_trial(result, chosen, memory)


@app.command(epilog=BENCH_EXAMPLES)
def bench(
    halves: Annotated[
        str,
        typer.Option(
            "--compare",
            help="ss, secret sharing; he, Paillier, and with it phe and TenSEAL's CKKS "
            "where they are installed; or both.",
        ),
    ] = "ss,he",
    clients: Annotated[
        str, typer.Option(help="How many clients, separated by commas.")
    ] = CLIENTS,
    length: Annotated[str, typer.Option(help="How many elements, the same way.")] = LENGTHS,
    budget: Annotated[
        float,
        typer.Option(
            help="Seconds for each party of a case; what takes longer is measured on a sample "
            "and scaled, and marked ~. SS is always measured whole."
        ),
    ] = BUDGET,
    per_float: Annotated[
        bool,
        typer.Option(help="Measure Paillier per float, too, by keys of 2048 and 3072 bits."),
    ] = True,
    as_json: Json = False,
    out: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="Where compare.json and compare.png go."),
    ] = None,
) -> None:
    """Measure sums by secret sharing against sums by homomorphic encryption.

    For every number of clients and every length: seconds, bytes and memory of a client, of the
    server and of whoever holds the key, each in a process of its own, on one core. Ctrl-C ends
    it early: the cases that are done are printed, and saved with --out.
    """
    with _errors_in_one_line():
        wanted, cases = families(halves), grid(clients, length)
        save = None if out is None else prepare(out)
        with _progress("cases done", len(cases)) as show:
            found = compare(wanted, cases, show, budget=budget, per_float=per_float)
        if found.rows:
            try:
                if save is not None:
                    save(found)
            finally:  # who cannot save it can still read it
                _print(found, as_json)
        if not found.complete:
            raise KeyboardInterrupt


def _print(found: Comparison, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(comparison_document(found), indent=2))
    else:
        print_comparison(found)


@contextmanager
def _progress(unit: str, total: int) -> Iterator[Callable[[str, int, int], None]]:
    """Show on a terminal what is under way, and how far."""
    console = Console(stderr=True, highlight=False)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:.0f}/{task.total:.0f} " + unit),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("".ljust(14), total=total)

        def show(what: str, done: int, of: int) -> None:
            name = what.replace("_", " ").ljust(14)
            bar.update(task, description=name, completed=done, total=of)

        yield show


@contextmanager
def _errors_in_one_line() -> Iterator[None]:
    try:
        yield
    except SecAggError as error:
        typer.echo(f"secagg: {error}", err=True)
        raise typer.Exit(2) from None
    except BrokenPipeError:
        raise  # whoever read the output has seen enough; click ends quietly
    except (OSError, MemoryError) as error:
        what = "out of memory" if isinstance(error, MemoryError) else "cannot go on"
        typer.echo(f"secagg: {what}: {error}".removesuffix(": "), err=True)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        typer.echo("secagg: interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _round(
    clients: int,
    threshold: int,
    neighbours: int | None,
    length: int,
    clip: float,
    modulus_bits: int | None,
) -> RoundParams:
    encoding = FixedPoint(clip, rounding="nearest")
    needed = (2 * clients * encoding.max_encoded).bit_length()
    return RoundParams(
        n_clients=clients,
        threshold=threshold,
        length=length,
        encoding=encoding,
        modulus_bits=max(32, needed) if modulus_bits is None else modulus_bits,
        neighbours=neighbours,
    )
