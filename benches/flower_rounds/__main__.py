"""Command line of the comparison; see `benches.flower_rounds`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benches.flower_rounds import __doc__ as described
from benches.flower_rounds import faults, report
from benches.flower_rounds.measure import Round, Settings, measure
from secagg._files import replace_file
from secagg.cli.output import progress
from secagg.errors import SecAggError
from secagg.kit.table import as_json, as_markdown
from secagg.kit.timing import INTERRUPTED, interruptible, undisturbed

_EXAMPLES = """\
examples:
  python -m benches.flower_rounds                   # about an hour, on an idle machine
  python -m benches.flower_rounds --dims 100000 --runs 2
  python -m benches.flower_rounds --quick           # 3 nodes, d = 1,000: a trial, no result
  python -m benches.flower_rounds --faults          # seconds, in one process
"""
_QUICK = Settings(lengths=(1000,), nodes=3, runs=1, rounds=1)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure and print; after Ctrl-C or a failed run, print what was measured."""
    parser = argparse.ArgumentParser(
        prog="python -m benches.flower_rounds",
        description=described,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    usual = Settings()
    dims = ",".join(map(str, usual.lengths))
    parser.add_argument(
        "--dims", type=lengths, default=dims, help=f"lengths of a model: {dims}"
    )
    for name, text in (
        ("nodes", "SuperNodes, 3 or more"),
        ("runs", "runs of each variant and length"),
        ("rounds", "rounds in a run"),
    ):
        default = getattr(usual, name)
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{text}: {default}")
    parser.add_argument(
        "--poll",
        type=float,
        default=usual.poll,
        help="seconds between looks for replies of `SecAgg` and `OneShot`: "
        f"{usual.poll:g}, their default; Flower's own loop has 3",
    )
    parser.add_argument("--quick", action="store_true", help="a trial that all variants run")
    parser.add_argument("--faults", action="store_true", help="faults of SecAgg+ and `SecAgg`")
    parser.add_argument("--json", action="store_true", help="print JSON in place of tables")
    parser.add_argument("--out", type=Path, help="folder for flower.json and flower.svg")
    given = parser.parse_args(argv)
    if given.faults:
        return _faults(as_data=given.json)
    if given.nodes < 3:
        parser.error(f"--nodes is {given.nodes}; nodes take part in sums of 3 or more")
    settings = Settings(
        lengths=given.dims,
        nodes=given.nodes,
        runs=given.runs,
        rounds=given.rounds,
        poll=given.poll,
    )
    return _compare(_QUICK if given.quick else settings, given.out, as_data=given.json)


def lengths(words: str) -> tuple[int, ...]:
    """Return the lengths of a list, which argparse rejects for a ValueError."""
    return tuple(int(word) for word in words.split(","))


def _faults(*, as_data: bool) -> int:
    with interruptible():
        found = faults.outcomes()
    print(as_json(found) if as_data else as_markdown(faults.table(found)))
    return 0


def _compare(settings: Settings, out: Path | None, *, as_data: bool) -> int:
    rounds: list[Round] = []
    code = 0
    try:
        with interruptible(), progress("runs", settings.total) as show:
            measure(settings, rounds, lambda done: show("", done, settings.total))
    except KeyboardInterrupt:
        print("interrupted: the runs so far", file=sys.stderr)
        code = INTERRUPTED
    except SecAggError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 1
    with undisturbed():
        text = as_json(report.document(settings, rounds))
        if out is not None and rounds:
            from secagg.kit.picture import svg  # needs matplotlib, the figures do not

            out.mkdir(parents=True, exist_ok=True)
            replace_file(out / "flower.json", f"{text}\n")
            from benches.flower_rounds.picture import draw

            replace_file(out / "flower.svg", svg(draw(rounds)))
        if as_data:
            print(text)
        elif rounds:
            for length in report.lengths(rounds):
                print(f"d = {length:,}\n\n{as_markdown(report.table(rounds, length))}\n")
            print(f"{as_markdown(report.target_table(rounds))}\n")
            for note in report.notes(settings):
                print(f"- {note}")
    return code


if __name__ == "__main__":
    sys.exit(main())
