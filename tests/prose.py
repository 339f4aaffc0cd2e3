"""Check the prose rules of CONTRIBUTING.md that a program can check; print every violation.

Rule 1: no docstring opens with a question word. Rule 3: no parameter is documented by a
genitive ("Of the …"). Rule 9: commit subjects are `area: imperative`, at most 60 characters.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ("secagg", "fedmf", "benches", "tests", "examples")
QUESTION = re.compile(r"(What|Who|Whom|Whose|Whether|How|Where|Which|Why)\b")
GENITIVE = re.compile(r"(?m)^ *\w[\w, *]* :.*\n +Of ")
SUBJECT = re.compile(r"[a-z0-9_./, -]+: [a-z]|Revert ")
LONGEST = 60
BEGUN = "d4f7e37"
"""The rules for subjects bind every commit after this one."""


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line number and text of every docstring of a file, attributes' included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text.strip()


def in_sources() -> Iterator[str]:
    """Yield the violations of rules 1 and 3."""
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for line, text in docstrings(path):
                where = f"{path.relative_to(ROOT)}:{line}"
                if QUESTION.match(text):
                    yield f"{where}: rule 1: {text.splitlines()[0]}"
                for found in GENITIVE.finditer(text):
                    yield f"{where}: rule 3: {' '.join(found.group().split())}"


def in_commits() -> Iterator[str]:
    """Yield the violations of rule 9, nothing where git or its history is absent."""
    command = ["git", "-C", str(ROOT), "log", "--no-merges", "--format=%h %s", f"{BEGUN}.."]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    for line in done.stdout.splitlines():
        subject = line.partition(" ")[2]
        if len(subject) > LONGEST or not SUBJECT.match(subject):
            yield f"commit {line}: rule 9: `area: imperative`, at most {LONGEST} characters"


def main() -> int:
    """Print the violations; return 1 if there is one."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    found = [*in_sources(), *in_commits()]
    print("\n".join(found) if found else "prose: rules 1, 3 and 9 hold")
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main())
