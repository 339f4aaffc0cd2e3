"""`secagg judge`: verdicts in files, judged by a registry."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from blamed_round import CASES, SignedRound, guilty
from cli_processes import invoke
from harness import make_identity
from secagg import client_id
from secagg.protocol.key_files import registry_to_json

NAMES = {client_id(name): name for name in ("ann", "bob", "cy", "dan", "e\x1bve", "fay", "guy")}
IDS = sorted(NAMES)


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    path = tmp_path / "clients.json"
    path.write_text(registry_to_json({NAMES[u]: make_identity(u).public for u in IDS}))
    return path


@pytest.mark.parametrize(("suite", "kind"), CASES)
def test_command_names_the_client_of_each_kind(
    suite: str, kind: str, registry: Path, tmp_path: Path
) -> None:
    verdict = guilty(SignedRound(suite, IDS), kind)
    path = tmp_path / "verdict.bin"
    path.write_bytes(verdict.data)
    given = path, "--registry", registry, "--corrupt", 0.14  # one of seven
    ran = invoke("judge", *given)
    assert (ran.exit_code, ran.stderr) == (0, "")
    name = NAMES[verdict.client].replace("\x1b", "\\x1b")
    assert ran.stdout.startswith(f"client {name} ")
    found = json.loads(invoke("judge", *given, "--json").stdout)
    assert found == {"client": verdict.client, "name": name, "kind": verdict.kind}


def test_command_fails_without_a_proof(registry: Path, tmp_path: Path) -> None:
    data = guilty(SignedRound(ids=IDS), "answer").data
    path = tmp_path / "verdict.bin"
    for content in (data[:-1], data + b"\0", b"", b"text"):
        path.write_bytes(content)
        ran = invoke("judge", path, "--registry", registry)
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert "convicts nobody" in ran.stderr
    assert "pass those of a file verdict-*.bin" in ran.stderr  # of b"text"


def test_command_counts_colluders_by_its_option(registry: Path, tmp_path: Path) -> None:
    """Two complaints convict where one of seven colludes, and prove nothing where two do."""
    path = tmp_path / "verdict.bin"
    path.write_bytes(guilty(SignedRound(ids=IDS), "complaints").data)
    given = path, "--registry", registry
    assert invoke("judge", *given, "--corrupt", 0.14).exit_code == 0
    ran = invoke("judge", *given)
    assert ran.exit_code == 2
    assert "count" in ran.stderr


@pytest.mark.parametrize("corrupt", [0.5, 1, -1])
def test_command_rejects_rounds_with_too_many_colluders(
    corrupt: float, registry: Path, tmp_path: Path
) -> None:
    path = tmp_path / "verdict.bin"
    path.write_bytes(guilty(SignedRound(ids=IDS), "answer").data)
    assert invoke("judge", path, "--registry", registry).exit_code == 0
    ran = invoke("judge", path, "--registry", registry, "--corrupt", corrupt)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert "--corrupt" in ran.stderr


def test_command_names_a_file_that_cannot_be_read(registry: Path, tmp_path: Path) -> None:
    ran = invoke("judge", tmp_path / "none.bin", "--registry", registry)
    assert ran.exit_code == 2
    assert "none.bin" in ran.stderr
    ran = invoke("judge", registry, "--registry", tmp_path / "none.json")
    assert ran.exit_code == 2
    assert "none.json" in ran.stderr
