"""Fuzz with atheris: ``python -m fuzz decoders --runs 2000000`` (tests/ on the path).

It starts from the corpus kept here and the seeds, keeps new inputs in a folder of its own, and
stops at the first input that raises.

``lying`` and ``oracles`` are the long runs of `lying`, without atheris: as many schedules of a
lying server at each door, or rounds in two worlds, as `--runs` has.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

ATHERIS = (
    "decoders",
    "parameters",
    "transcripts",
    "paillier",
    "threshold",
    "oneshot",
    "states",
    "verdicts",
)
LYING = ("lying", "oracles")
CORPUS = Path(__file__).parent / "corpus"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=(*ATHERIS, *LYING))
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", type=int, default=512, help="MiB the process may take")
    parser.add_argument("--keep", type=Path, help="folder for inputs that reached new code")
    parser.add_argument("--doors", default="", help="beginning of the doors' names, of lying")
    given = parser.parse_args()
    if given.target in LYING:
        from lying import run  # needs no atheris, and atheris not all that it needs

        sys.exit(not run.main(given.target, given.runs, given.seed, given.doors))
    fuzz(given)


def fuzz(given: argparse.Namespace) -> None:
    import atheris

    with atheris.instrument_imports(include=["secagg", "fuzz"]):
        from fuzz.targets import TARGETS, seeds

    kept = given.keep or Path(tempfile.mkdtemp())
    kept.mkdir(parents=True, exist_ok=True)
    for i, seed in enumerate(seeds(given.target)):
        (kept / f"seed{i:02}").write_bytes(seed)
    folders = [str(kept)]
    if (CORPUS / given.target).is_dir():
        folders.append(str(CORPUS / given.target))
    options = [f"-runs={given.runs}", f"-seed={given.seed}", f"-rss_limit_mb={given.memory}"]
    atheris.Setup([sys.argv[0], *options, "-max_len=2048", *folders], TARGETS[given.target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
