"""The costs of version 4, on small rounds: counts of primitives, and the tables."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest

from benches.speed.releases import ROOT
from benches.version4 import __main__ as command
from benches.version4 import primitives, worker
from benches.version4.__main__ import Case
from secagg import _fast
from secagg.kit.table import as_markdown
from secagg.protocol import kem
from secagg.protocol.keys import U8
from secagg.protocol.traffic import client_traffic


def case(*, active: bool, suite: str) -> Case:
    return Case(7, None, 5, 20, 2, active, suite)


def costs(one: Case) -> dict[str, float]:
    return worker.costs(**vars(one))


@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
def test_bytes_are_those_of_the_formulas(active: bool, suite: str) -> None:
    one = case(active=active, suite=suite)
    found = costs(one)
    phases = client_traffic(one.params, client_id=6, u3=5, u4=5 if active else None).values()
    assert found["up"] == sum(phase.up for phase in phases)
    assert found["down"] == sum(phase.down for phase in phases)
    assert min(found["client"], found["server"]) > 0


def test_kem_is_called_as_often_as_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the work of all clients; clients that drop out decapsulate nothing."""
    calls = Counter[str]()

    def counted(name: str, call: Any) -> Any:
        def counting(*arguments: Any) -> Any:
            calls[name] += 1
            return call(*arguments)

        return counting

    monkeypatch.setattr(kem, "encapsulate", counted("ML-KEM encapsulation", kem.encapsulate))
    pair = kem.KemPair
    monkeypatch.setattr(pair, "decapsulate", counted("ML-KEM decapsulation", pair.decapsulate))
    monkeypatch.setattr(kem, "is_valid", counted("ML-KEM key", kem.is_valid))
    one = case(active=False, suite="hybrid")
    costs(one)
    client, server = primitives.of_hybrid(one.params, one.dropped)
    assert calls["ML-KEM encapsulation"] == 7 * client["ML-KEM encapsulation"]
    assert calls["ML-KEM decapsulation"] == 5 * client["ML-KEM decapsulation"]
    assert calls["ML-KEM key"] >= server["ML-KEM key"]


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
def test_shares_are_hashed_as_often_as_stated(
    suite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Count hashes of clients and server together, of the stated sizes and of the lists."""
    sizes, kernel = Counter[int](), _fast.sha256

    def sha256(rows: U8, out: U8) -> None:
        sizes[rows.shape[1]] += len(rows)
        kernel(rows, out)

    monkeypatch.setattr(_fast, "sha256", sha256)
    one = Case(7, None, 5, 20, 0, True, suite)
    costs(one)
    client, server = primitives.of_blame(one.params, one.dropped)
    for size in (103, 193, 1248 if suite == "hybrid" else 96):
        name = primitives.hashed(size)
        assert sizes[size] == 7 * client[name] + server[name], name
    # a tree of seven leaves has seven nodes above them; the server makes one more, of zeros
    assert sizes[77] == 7 * client[primitives.NODE] + server[primitives.NODE] + 7


def test_tables_have_the_ratio_of_each_part() -> None:
    known = dict.fromkeys(primitives.prices(), 1e-6)
    made = {
        one: {"client": 2.0, "server": 3.0, "up": 1, "down": 1}
        for one in command.cases((7, None), 20)
    }
    lines = as_markdown(command.added_table(made, known)).splitlines()
    assert sum("hybrid, semi-honest" in line for line in lines) == 2
    assert sum("blame" in line for line in lines) == 4
    assert len(as_markdown(command.costs_table(made)).splitlines()) == 2 + 6


def test_worker_runs_the_code_of_its_folder() -> None:
    given = json.dumps(vars(case(active=True, suite="hybrid")))
    ran = subprocess.run(
        [sys.executable, "-m", "benches.version4.worker"],
        input=given,
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert json.loads(ran.stdout)["code"].startswith(str(ROOT))
