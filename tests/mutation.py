"""Plant small faults in the code that guards a sum, and count those that its tests detect.

``python tests/mutation.py`` copies the checkout, changes one place of the copy at a time, and
runs the tests that `mutation_subjects` names for the changed file. The checkout stays as it
is. The extensions must be compiled; tests of real data want FEDMF_DATA. The operators are:

- compare: swap < and <=, > and >=, == and !=, in and not in, is and is not
- arithmetic: swap + and -, * and //, << and >>, & and |; of / and ** make *, of % make //
- boolean: swap `and` and `or`
- condition: negate the test of an if, a while, an assert or a conditional expression, unless
  the swap of its comparison does
- constant: add one to a whole number
- call, raise: make pass of a raise, or of a statement that is only a call

Left alone are annotations, decorators, strings with all that is formatted into them, what is
raised, ``__repr__``, unions of types, and blocks for the type checker.

The seed, the function's qualified name, the operator and the statement decide which places
are taken. No path or line number counts, so code that only moved gets the same mutants.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import cache_from_source
from itertools import accumulate
from pathlib import Path
from textwrap import shorten
from time import perf_counter
from typing import Any, NoReturn

from mutation_subjects import SUBJECTS

ROOT = Path(__file__).resolve().parent.parent
NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "build", "dist", "runs")
PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0")
SECONDS = 60.0
MEMORY = 8 << 30  # bytes for each process, so that no mutant uses up the memory

BOUNDARIES = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
PAIRS: list[tuple[type[ast.AST], type[ast.AST]]] = [
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn)),
    *((ast.Is, ast.IsNot), (ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv)),
    *((ast.LShift, ast.RShift), (ast.BitAnd, ast.BitOr), (ast.And, ast.Or)),
]
SWAPPED = {a: b for pair in PAIRS for a, b in (pair, pair[::-1])}
SWAPPED |= {ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.Mod: ast.FloorDiv}
BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases", "decorator_list")
NOT_CODE = ("annotation", "returns", "decorator_list", "bases")


@dataclass(frozen=True)
class Place:
    """A node, the statement it is in, and the qualified name of the function around them."""

    node: ast.AST
    statement: ast.AST
    function: str = ""

    def inside(self) -> Iterator[Place]:
        """Yield the places that may change below this one, in the order of the source."""
        for name, value in ast.iter_fields(self.node):
            if name in NOT_CODE or isinstance(self.node, ast.Raise):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not self._spares(child):
                    place = self._at(child)
                    yield place
                    yield from place.inside()

    def _at(self, node: ast.AST) -> Place:
        statement = node if isinstance(node, ast.stmt) else self.statement
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            return Place(node, statement, self.function)
        return Place(node, statement, f"{self.function}.{node.name}".lstrip("."))

    def _spares(self, node: ast.AST) -> bool:
        match node:
            case ast.JoinedStr() | ast.FunctionDef(name="__repr__"):
                return True
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                return True
            case ast.BinOp(op=ast.BitOr()):  # outside of functions a union of types
                return not self.function
        return False

    def changes(self) -> Iterator[tuple[str, Any, ast.AST]]:
        """Yield operators, with the node that each replaces and its replacement."""
        match self.node:
            case ast.Compare(ops=ops) as node:
                for i, op in enumerate(ops):
                    others = [*ops[:i], SWAPPED[type(op)](), *ops[i + 1 :]]
                    yield "compare", node, changed(node, ops=others)
            case ast.BinOp(left=ast.Constant(value=str() | bytes()) | ast.JoinedStr()):
                return  # text has no other operator than +
            case ast.BinOp(right=ast.Constant(value=str() | bytes()) | ast.JoinedStr()):
                return
            case ast.BinOp(op=op) | ast.AugAssign(op=op) as node if type(op) in SWAPPED:
                yield "arithmetic", node, changed(node, op=SWAPPED[type(op)]())
            case ast.BoolOp(op=op) as node:
                yield "boolean", node, changed(node, op=SWAPPED[type(op)]())
            case ast.Constant(value=int(value)) as node if not isinstance(value, bool):
                yield "constant", node, ast.Constant(value + 1)
            case ast.Expr(value=ast.Call()) as node:
                yield "call", node, ast.Pass()
            case ast.Raise() as node:
                yield "raise", node, ast.Pass()
            case ast.If() | ast.While() | ast.Assert() | ast.IfExp() as node:
                ops = node.test.ops if isinstance(node.test, ast.Compare) else []
                if len(ops) != 1 or isinstance(ops[0], BOUNDARIES):
                    yield "condition", node.test, ast.UnaryOp(ast.Not(), node.test)


def changed(node: ast.AST, **fields: object) -> ast.AST:
    """Return a copy of a node with other fields."""
    new = copy.copy(node)
    vars(new).update(fields)
    return new


def head(statement: ast.AST) -> str:
    """Return a statement's text; of a compound one, only the part before its block."""
    empty = {name: list[ast.AST]() for name in BLOCKS if hasattr(statement, name)}
    return ast.unparse(changed(statement, **empty)).strip()


@dataclass(frozen=True)
class Mutant:
    """One fault: its report, the bytes of the file that it replaces, and the new bytes."""

    facts: dict[str, Any]
    span: tuple[int, int]
    patch: bytes

    def __str__(self) -> str:
        short = {name: shorten(str(value), 70) for name, value in self.facts.items()}
        text = "{subject} {file}:{line} {operator}: {before} -> {after}"
        inside = "" if short["before"] == short["statement"] else " (in: {statement})"
        return (text + inside).format(**short)


def mutants_of(subject: str, file: str) -> Iterator[Mutant]:
    """Yield all mutants of a file, without their ranks."""
    source = (ROOT / file).read_bytes()
    lines = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    tree = ast.parse(source)
    for place in Place(tree, tree).inside():
        for operator, old, new in place.changes():
            after = ast.unparse(new)
            facts = {
                **{"subject": subject, "file": file, "line": old.lineno, "operator": operator},
                **{"function": place.function, "statement": head(place.statement)},
                **{"before": ast.unparse(old), "after": after},
            }
            start = lines[old.lineno - 1] + old.col_offset
            end = lines[old.end_lineno - 1] + old.end_col_offset
            patch = f"({after})" if isinstance(new, ast.expr) else after
            yield Mutant(facts, (start, end), patch.encode())


def ranked(subject: str, seed: int) -> list[Mutant]:
    """Return all mutants of a subject by rank, whichever files they are in."""
    found = [one for file in SUBJECTS[subject] for one in mutants_of(subject, file)]
    alike: Counter[tuple[object, ...]] = Counter()
    for mutant in found:
        name = (seed, *(mutant.facts[key] for key in ("function", "operator", "statement")))
        mutant.facts["rank"] = hashlib.sha256(repr((*name, alike[name])).encode()).hexdigest()
        alike[name] += 1
    return sorted(found, key=lambda one: str(one.facts["rank"]))


def write(path: Path, source: bytes) -> None:
    """Write a module, and drop its bytecode, whose time in seconds and size may still fit."""
    path.write_bytes(source)
    Path(cache_from_source(path)).unlink(missing_ok=True)


def python(tree: Path, *arguments: str) -> tuple[str, float]:
    """Run Python in a tree; return "survived" if it succeeds, and the seconds it took."""
    shutil.rmtree(tree / ".hypothesis" / "examples", ignore_errors=True)
    settings = {"PYTHONPATH": str(tree), "PYTHONHASHSEED": "0", "TMPDIR": str(tree.parent)}
    start = perf_counter()
    with tree.with_name("log").open("w") as log:
        child = subprocess.Popen(  # noqa: S603
            [sys.executable, *arguments],
            cwd=tree,
            env=os.environ | settings,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            resource.prlimit(child.pid, resource.RLIMIT_AS, (MEMORY, MEMORY))
            outcome = "caught" if child.wait(SECONDS) else "survived"
        except subprocess.TimeoutExpired:
            outcome = "timeout"
        finally:  # with its children
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
    return outcome, round(perf_counter() - start, 1)


def run(mutants: Sequence[Mutant]) -> Iterator[Mutant]:
    """Try the mutants one by one in a copy of the checkout, with a line for each."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        tree = Path(folder).resolve() / "tree"
        shutil.copytree(ROOT, tree, symlinks=True, ignore=NOT_COPIED)
        ours = f"all(m.__file__.startswith({str(tree)!r}) for m in (secagg, fedmf))"
        checks = [("-c", f"import fedmf, secagg; assert {ours}"), *map(tests_of, mutants)]
        for arguments in dict.fromkeys(checks):
            outcome, seconds = python(tree, *arguments)
            print(f"unmutated, {seconds} s: python {' '.join(arguments)}", flush=True)
            if outcome != "survived":
                said = tree.with_name("log").read_text()[-4000:]
                fail(f"{outcome} before anything was changed:\n{said}")
        for number, mutant in enumerate(mutants, start=1):
            path, (start, end) = tree / mutant.facts["file"], mutant.span
            source = path.read_bytes()
            write(path, source[:start] + mutant.patch + source[end:])
            outcome, seconds = python(tree, *tests_of(mutant))
            write(path, source)
            mutant.facts.update(outcome=outcome, seconds=seconds)
            print(f"{number}/{len(mutants)} {mutant}: {outcome} {seconds} s", flush=True)
            yield mutant


def tests_of(mutant: Mutant) -> tuple[str, ...]:
    """Return Python's arguments to run the tests that should detect it."""
    arguments = [*PYTEST]
    for name in SUBJECTS[mutant.facts["subject"]][mutant.facts["file"]].split():
        folder, _, stem = name.rpartition("/")
        found = [*ROOT.glob(f"tests/**/{folder}/test_{stem}.py")]
        if len(found) != 1:
            fail(f"{name} in the table of subjects stands for {len(found)} files, not one")
        arguments.append(found[0].relative_to(ROOT).as_posix())
    return tuple(arguments)


def table(done: Sequence[Mutant]) -> str:
    """Return the number of detected mutants of each subject; a timeout is a detection."""
    lines = [f"{'subject':10}{'mutants':>9}{'caught':>9}{'survived':>10}"]
    for name in (*SUBJECTS, "total"):
        of = [x.facts["outcome"] for x in done if name in (x.facts["subject"], "total")]
        left = of.count("survived")
        lines.append(f"{name:10}{len(of):9}{len(of) - left:9}{left:10}")
    return "\n".join(lines)


def fail(why: str) -> NoReturn:
    """End with the status of an error that is no mutant's."""
    print(f"mutation: {why}", file=sys.stderr)
    raise SystemExit(2)


def main() -> int:
    """Choose the mutants, try them, and report the number detected."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--per-subject", type=int, default=18, metavar="N")
    parser.add_argument("--only", choices=SUBJECTS, help="take one subject")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results here too")
    given = parser.parse_args()
    subjects, done, status = [given.only] if given.only else SUBJECTS, list[Mutant](), 0
    try:
        chosen = [one for s in subjects for one in ranked(s, given.seed)[: given.per_subject]]
        if given.list:
            print(*chosen, sep="\n")
        for mutant in chosen if given.list else run(chosen):
            done.append(mutant)
    except KeyboardInterrupt:
        status = 130
    except (OSError, SyntaxError) as error:
        fail(str(error))
    if not given.list:
        print(table(done))
    if given.json:
        facts = {"seed": given.seed, "mutants": [mutant.facts for mutant in done]}
        given.json.write_text(json.dumps(facts, indent=1) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
