"""Commands under subsets of the extras: each works, prints help, or names the remedy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from imported_roots import roots_imported
from secagg.cli.files import write_keys
from secagg.statistics import Moments, Number, Plan, Site, Study
from secagg.testing import make_identity

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = list(PROJECT["optional-dependencies"])
ALL = ",".join(EXTRAS)
SUBSETS = ["", "he", "cli", "cli,he", "cli,fedmf", ALL]
LARGE = {"he", "cli", "cli,fedmf", ALL}
BENCH = "secagg bench --clients 3 --length 9 --no-per-float --compare"
JOIN = "secagg join http://127.0.0.1:9"
STATS_JOIN = "secagg stats join http://127.0.0.1:9 study.toml 0.csv --client a --identity a.pem"
STATS_SERVE = "secagg stats serve study.toml sites.json --out study --port 0 --operator-port 0"
FEDMF = "fedmf train --rounds 1 --no-ranking --model"

# a call, and the extras of which it needs one beside cli
CALLS = {
    "fedmf data list": "",
    "fedmf data describe simulated": "",
    f"{FEDMF} fedmf --cohort 20": "",
    f"{FEDMF} implicit --aggregation plain -k 2": "",
    f"{FEDMF} dpfedmf --epsilon 8 --aggregation plain": "privacy",
    f"{FEDMF} fedmf --cohort 3 --aggregation paillier --trust key-holder": "he|bench",
    "fedmf train --rounds 1 --model fedmf --aggregation plain --out out": "",
    "fedmf recommend out --user 7": "",
    "fedmf export out --out factors.npz": "",
    "fedmf export out --to parquet --out factors.parquet": "data",
    "fedmf search --model fedmf --grid rounds=1": "",
    "fedmf attack --users 3": "",
    "secagg params --clients 100": "",
    "secagg simulate --clients 5": "",
    "secagg one-shot simulate --clients 5 --noise 1e9": "",
    f"{BENCH} ss --out bench": "bench|fedmf",
    f"{BENCH} he": "he|bench",
    "secagg identity keygen a.pem": "",
    f"{JOIN} --client a --identity a.pem --vector v.npy --patience 0.01": "http",
    "secagg collect status reports.sqlite": "",
    "secagg stats plan study.toml": "",
    "secagg stats check study.toml 0.csv": "",
    "secagg stats simulate study.toml 0.csv 1.csv 2.csv": "statistics|fedmf",
    "secagg stats report study.bin": "statistics|fedmf",
    f"{STATS_JOIN} --ledger ledger --patience 0.01": "http",
    f"{STATS_SERVE} --deadline 0.01": "http",
}
BY_NAME = {"tenseal"}  # secagg bench asks for it, by its name
FOR_TYPES = {"_typeshed", "requests"}  # imported by mypy only
UNREACHED = {"http"}  # calls that end in an error with the extra, too: nobody listens


def every_command() -> Iterator[list[str]]:
    """Yield the words of both commands, and of all commands below them."""
    get_command = import_module("typer.main").get_command
    for package in ("fedmf", "secagg"):
        left = [([package], get_command(import_module(f"{package}.cli").app))]
        while left:
            words, found = left.pop()
            yield words
            below: dict[str, Any] = getattr(found, "commands", {})
            left += [([*words, name], one) for name, one in below.items() if not one.hidden]


def write_study(folder: Path) -> None:
    """Write a plan, the tables of three sites, the registry, and the study after its end."""
    plan = Plan("study", {"a": Number(0, 9)}, (Moments("a"),))
    (folder / "study.toml").write_text(plan.to_toml())
    for i in range(3):
        (folder / f"{i}.csv").write_text("a\n" + "3\n4\n" * 5)
    write_keys(folder / "sites.json", {i: make_identity(i).public for i in range(3)})
    vectors = [Site(folder / f"{i}.csv", plan)(Study(plan).message()) for i in range(3)]
    (folder / "study.bin").write_bytes(Study(plan, (sum(vectors),)).message())


def run(extras: str, commands: list[list[str]], folder: Path) -> list[tuple[Any, str, str]]:
    """Run commands in one process that has these extras only."""
    done = subprocess.run(  # noqa: S603
        [sys.executable, str(ROOT / "tests" / "support" / "hidden.py"), extras],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        check=True,
    )
    return [tuple(one) for one in json.loads(done.stdout)]


@pytest.mark.parametrize(
    "extras", [pytest.param(one, marks=[pytest.mark.large] * (one in LARGE)) for one in SUBSETS]
)
def test_commands_work_or_name_the_remedy(extras: str, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.zeros(3))
    (tmp_path / "reports.sqlite").touch()  # only begin makes the file
    write_study(tmp_path)
    helps = [[*words, "--help"] for words in every_command()]
    versions = [[package, "--version"] for package in ("fedmf", "secagg")]
    needs = dict.fromkeys(map(" ".join, [*helps, *versions]), "") | CALLS
    there = {"", *extras.split(",")}
    ended = run(extras, [name.split() for name in needs], tmp_path)
    for (name, need), (code, _, err) in zip(needs.items(), ended, strict=True):
        works = "cli" in there and not there.isdisjoint(need.split("|"))
        if works and need not in UNREACHED:
            assert code == 0, f"{name}: {code} {err}"
        else:
            assert code == 2, f"{name}: {code} {err}"
            (line,) = err.splitlines()[-1:]
            assert line.startswith(f"{name.split()[0]}: "), err
            assert works or "pip install" in line, err


def test_every_imported_package_is_declared() -> None:
    # what another package brings today may be gone tomorrow: click was, with typer 0.29
    lines = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    declared = {canonicalize_name(Requirement(one).name) for line in lines for one in line}
    owners = metadata.packages_distributions()
    files = [path for name in ("secagg", "fedmf") for path in (ROOT / name).rglob("*.py")]
    used = set[str]().union(*map(roots_imported, files)) - sys.stdlib_module_names
    undeclared = {
        root
        for root in used - {"", "secagg", "fedmf"}
        if declared.isdisjoint(map(canonicalize_name, owners.get(root, [])))
    }
    assert undeclared == BY_NAME | FOR_TYPES
