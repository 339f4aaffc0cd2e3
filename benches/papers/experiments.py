"""FedMF under encryption beside FedMF in the clear."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from benches.papers.comparison import Comparison
from benches.papers.under_encryption import fedmf_under_encryption, items_under_encryption
from fedmf.aggregate.aggregation import Progress
from fedmf.data import NAMES, load
from fedmf.data.splits import random_split
from fedmf.data.subset import most_rated
from fedmf.errors import FedMFError
from secagg.paillier import generate_keypair

__all__ = ["main"]

INTERRUPTED = 130  # what shells report for a command that Ctrl-C ended

EPILOG = """\
examples:
  export FEDMF_DATA=~/movielens      the folder that holds the folder ml-latest-small
  python -m benches.papers.experiments fedmf
  python -m benches.papers.experiments fedmf --data ml-100k --no-phe --json > fedmf.json
  python -m benches.papers.experiments basu --refresh-every 30
  python -m benches.papers.experiments basu --data simulated --bits 2048    needs no FEDMF_DATA
"""


def main() -> None:
    """Run an experiment: what it found on stdout, progress and errors on stderr."""
    try:
        try:
            arguments = _parser().parse_args()
            found = _run(arguments)
            print(json.dumps(found.document(), indent=2) if arguments.json else found.table())
        finally:
            sys.stdout.flush()  # here, as nobody could catch it when the interpreter ends
    except FedMFError as error:
        print(f"fedmf: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


def _run(arguments: argparse.Namespace) -> Comparison:
    corner = most_rated(load(arguments.data), arguments.items, arguments.users)
    split = random_split(corner, seed=arguments.seed)
    common = {"rounds": arguments.rounds, "seed": arguments.seed}
    with _shown(quiet=arguments.json and not sys.stdout.isatty()) as progress:
        progress(f"making a key of {arguments.bits} bits", 0, 1)
        key = generate_keypair(arguments.bits)
        if arguments.experiment == "fedmf":
            return fedmf_under_encryption(
                split, key, **common, with_phe=arguments.phe, progress=progress
            )
        return items_under_encryption(
            split, key, **common, refresh_every=arguments.refresh_every, progress=progress
        )


@contextmanager
def _shown(*, quiet: bool) -> Iterator[Progress]:
    """Show on stderr what is being done, where rich is installed."""
    try:
        from rich.console import Console

        from fedmf.cli.report import StageReport
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] != "rich":
            raise
        quiet = True
    if quiet:
        yield lambda what, done, of: None
        return
    with StageReport(Console(stderr=True, highlight=False)) as report:
        yield report.stage


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benches.papers.experiments",
        description="FedMF under Paillier encryption, beside the same training in the clear.\n"
        "Options are those of each experiment: fedmf --help, basu --help.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    experiments = parser.add_subparsers(dest="experiment", required=True)
    fedmf = experiments.add_parser(
        "fedmf",
        help="sums that a key holder apart from the server decrypts, beside phe with a "
        "ciphertext for each float",
    )
    basu = experiments.add_parser(
        "basu",
        help="an encrypted item matrix, from which the server subtracts what users who share a "
        "key have encrypted",
    )
    for experiment, rounds in ((fedmf, 36), (basu, 30)):
        add = partial(experiment.add_argument, metavar="N", type=int)
        experiment.add_argument(
            "--data",
            default="ml-latest-small",
            metavar="NAME",
            help=f"{', '.join(NAMES)} (ml-latest-small); all but simulated are sought in the "
            "folder that the environment variable FEDMF_DATA names",
        )
        add("--items", default=40, help="so many of the most rated (40)")
        add("--users", default=50, help="so many of those who rated most of them (50)")
        add("--rounds", default=rounds, help=f"iterations ({rounds})")
        add("--seed", default=0, help="of the split and the start (0)")
        add("--bits", default=3072, help="of the key (3072)")
        experiment.add_argument(
            "--json", action="store_true", help="print JSON in place of a table"
        )
    fedmf.add_argument(
        "--no-phe",
        dest="phe",
        action="store_false",
        help="without phe, as it need not be there",
    )
    basu.add_argument(
        "--refresh-every",
        default=10,
        type=int,
        metavar="N",
        help="iterations that slots have room for (10)",
    )
    return parser


if __name__ == "__main__":
    main()
