"""A collection as an operator runs it: helpers, processes beside a database, and clients."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from cli_processes import address, invoke, process, until
from collect_parts import Databases

NAMES = ("alice", "Zoë", "7")


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """Folder with identities, a registry and vectors."""
    for u, name in enumerate(NAMES):
        made = invoke("identity", "keygen", tmp_path / f"{name}.pem")
        invoke("identity", "register", tmp_path / "r.json", name, made.stdout.strip())
        np.save(tmp_path / f"{name}.npy", np.full(5, u / 4))
    return tmp_path


@pytest.fixture
def helpers(keys: Path) -> Iterator[tuple[object, ...]]:
    """Options that name two running helpers."""
    public = json.loads(invoke("identity", "keygen", keys / "a.pem", "--json").stdout)
    made = [
        invoke("helper", "keygen", keys / f"{j}.journal", "--suite", "x25519", "--json")
        for j in (1, 2)
    ]
    entries = [json.loads(one.stdout) for one in made]
    more = ("--aggregator", public["ed25519"], "--port", 0, "--registry", keys / "r.json")
    first, second = (process("helper", "serve", keys / f"{j}.journal", *more) for j in (1, 2))
    with first as one, second as two:
        for entry, started in zip(entries, (one, two), strict=True):
            entry["url"] = address(started, "helper")
        (keys / "helpers.json").write_text(json.dumps(entries))
        yield "--helpers", keys / "helpers.json", "--identity", keys / "a.pem"


def succeeded(*arguments: object) -> dict[str, object]:
    done = invoke(*arguments, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.large
def test_commands_of_a_collection(
    keys: Path, helpers: tuple[object, ...], new_database: Callable[[], Databases]
) -> None:
    database = new_database().where
    registry = ("--registry", keys / "r.json")
    assert succeeded("collect", "status", database) == {"batches": []}
    size = ("--length", 5, "--clip", 8)
    begun = succeeded("collect", "begin", database, keys / "r.json", *size, *helpers)
    worker = process("collect", "work", database, *registry, *helpers)
    with process("collect", "serve", database, *registry, "--port", 0) as serving, worker as w:
        until(w, "working")
        url = address(serving, "collection")
        for name in NAMES:
            files = ("--identity", keys / f"{name}.pem", "--vector", keys / f"{name}.npy")
            trust = ("--helpers", keys / "helpers.json", "--clip", 8)
            sent = succeeded("report", url, "--client", name, *files, *trust)
            assert sent["parameters"] == begun["parameters"]
        closing = ("collect", "close", database, *registry, *helpers, "--out", keys / "sums")
        path = str(keys / "sums" / "sum-0.npy")
        assert succeeded(*closing) == {"sums": [{"out": path, "survivors": 3}]}
        assert np.load(path).tolist() == [0.75] * 5
        assert succeeded(*closing) == {"sums": []}
    (batch,) = succeeded("collect", "status", database)["batches"]  # type: ignore[misc]
    assert (batch["state"], batch["reports"], batch["slices_left"]) == ("done", 3, 0)
