"""Check the prose rules of CONTRIBUTING.md that a program can check; print every violation.

Rule 1: no docstring opens with a question word. Rule 3: no parameter is documented by a
genitive ("Of the …"). Rule 9: commit subjects are `area: imperative`, at most 60 characters;
skipped in a clone without the history. Rule 11: pronouns in docstrings, in 1,000 words of each
package, are at most those of `PRONOUNS`; lower a number there when its package has fewer.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = ("secagg", "fedmf", "benches", "tests", "examples", "docs")
SUFFIXES = (".py", ".pyi", ".pyx")
QUESTION = re.compile(r"(?i)(what|who|whom|whose|whether|how|when|where|which|why)\b")
GENITIVE = re.compile(r"(?m)^ +(?:.*[.;:] )?Of\b.*|^[\w*, ]+ : [^,\n]*, of\b.*|\AOf\b.*")
TRIPLE = re.compile(r'"""(.*?)"""', re.DOTALL)
SUBJECT = re.compile(r"[a-z0-9_./, -]+: [a-z]|Revert ")
LONGEST = 60
PRONOUN = re.compile(
    r"\b(?:that|those) of\b|\bits?\b|\bof one\b"
    r"|\b(?:the|an?|this|that|each|own|other|first|last|new|later|older|another) ones?\b(?! of)"
)
PRONOUNS: dict[str, float] = {
    "fedmf": 2.8,
    "fedmf.aggregate": 0.9,
    "fedmf.data": 0.3,
    "fedmf.fcf": 0.5,
    "secagg": 5.7,
    "secagg.bench": 5.9,
    "secagg.cli": 5.7,
    "secagg.client": 6.3,
    "secagg.encoding": 1.8,
    "secagg.flower": 4.8,
    "secagg.graph": 2.8,
    "secagg.http": 0.7,
    "secagg.journal": 1.6,
    "secagg.oneshot": 0.2,
    "secagg.paillier": 1.9,
    "secagg.protocol": 4.7,
    "secagg.server": 3.9,
    "secagg.session": 2.9,
    "secagg.shamir": 5.7,
    "secagg.simulate": 4.7,
    "secagg.testing": 2.6,
}
"""Largest number of pronouns in 1,000 words of a package's docstrings; may only fall."""
BEGUN = "d4f7e37"
"""The rules for subjects bind every commit after this one."""


def docstrings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line number and text of every docstring of a file, attributes' included."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".pyx":  # Cython's syntax is not Python's
        for found in TRIPLE.finditer(source):
            yield source.count("\n", 0, found.start()) + 1, inspect.cleandoc(found[1])
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, inspect.cleandoc(text)


def in_sources() -> Iterator[str]:
    """Yield the violations of rules 1 and 3."""
    files = (path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*")))
    for path in [*ROOT.glob("*.py"), *files]:
        if path.suffix not in SUFFIXES:
            continue
        for line, text in docstrings(path):
            where = f"{path.relative_to(ROOT)}:{line}"
            if QUESTION.match(text):
                yield f"{where}: rule 1: {text.splitlines()[0]}"
            for found in GENITIVE.finditer(text):
                yield f"{where}: rule 3: {' '.join(found.group().split())}"


def rates() -> dict[str, float]:
    """Return the number of pronouns in 1,000 words of docstrings, by package."""
    found: dict[str, list[str]] = {}
    for path in (one for root in ("secagg", "fedmf") for one in (ROOT / root).rglob("*.py")):
        package = ".".join(path.relative_to(ROOT).parts[:-1])
        found.setdefault(package, []).extend(text for _, text in docstrings(path))
    texts = {package: " ".join(" ".join(texts).split()) for package, texts in found.items()}
    return {
        package: 1000 * len(PRONOUN.findall(text)) / max(len(re.findall("[A-Za-z']+", text)), 1)
        for package, text in texts.items()
    }


def in_packages() -> Iterator[str]:
    """Yield the violations of rule 11."""
    for package, rate in rates().items():
        if rate > (most := PRONOUNS.get(package, 0.0)):
            yield f"{package}: rule 11: {rate:.1f} pronouns in 1,000 words, at most {most}"


def commits() -> list[str] | None:
    """Return hash and subject of every commit bound by rule 9; None without the history."""
    command = ["git", "-C", str(ROOT), "log", "--no-merges", "--format=%h %s", f"{BEGUN}.."]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except FileNotFoundError:
        return None
    return None if done.returncode else done.stdout.splitlines()


def in_commits(lines: list[str]) -> Iterator[str]:
    """Yield the violations of rule 9."""
    for line in lines:
        subject = line.partition(" ")[2]
        if len(subject) > LONGEST or not SUBJECT.match(subject):
            yield f"commit {line}: rule 9: `area: imperative`, at most {LONGEST} characters"


def main() -> int:
    """Print the violations; return 1 if there is one."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    lines = commits()
    found = [*in_sources(), *in_packages(), *in_commits(lines or [])]
    if lines is None:
        print(f"prose: rule 9 skipped: no git history since commit {BEGUN}")
    rules = "1, 3 and 11" if lines is None else "1, 3, 9 and 11"
    print("\n".join(found) if found else f"prose: rules {rules} hold")
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main())
