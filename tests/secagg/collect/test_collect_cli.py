"""A collection as an operator runs it: helpers, processes beside a database, and clients."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from cli_processes import ROOT, address, invoke, process, until
from collect_parts import Collected, Databases, Rejecting
from oneshot_parties import parties, registry_for
from secagg import TooFewSurvivors
from secagg.cli.collect_close import _close
from secagg.cli.sums import Aggregator
from secagg.collect import State

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


@pytest.mark.parametrize("state", list(State)[:-1])
async def test_close_goes_on_from_every_state(
    databases: Databases, state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)

        def write(path: Path, content: bytes) -> None:
            assert collected.state() == State.OPENED, "the reports are there until then"
            path.write_bytes(content)

        monkeypatch.setattr("secagg.cli.collect_close.replace_file", write)
        collected.report(0, 1, 2)
        if state != State.OPEN:
            collected.close(reopen=True)  # the next batch has too few reports
        if state not in (State.OPEN, State.CLOSING):
            await collected.work()
            while await collected.closer().step(0) != state:
                pass
        asking = collected.asking()
        aggregator = SimpleNamespace(reach=lambda params, needed: asking.reach(params))
        known = registry_for(made.params)
        given = collected.database, cast("Aggregator", aggregator), known, tmp_path
        assert len(await _close(*given, reopen=False)) == 1
        assert np.load(tmp_path / "sum-0.npy").tolist() == made.expected(range(3))
        assert collected.state() == State.DONE


async def test_batch_that_helpers_reject_keeps_no_other_from_its_sum(
    databases: Databases, tmp_path: Path
) -> None:
    with parties() as made:
        collected = Collected(databases.open(), made)
        collected.report(0, 1, 2, 10)
        collected.close(reopen=True)
        links = [Rejecting(helper, frozenset({1, 10})) for helper in made.helpers]
        await collected.work(links)
        collected.report(3, 4, 5)
        asking = collected.asking(links)
        aggregator = SimpleNamespace(reach=lambda params, needed: asking.reach(params))
        known = registry_for(made.params)
        given = collected.database, cast("Aggregator", aggregator), known, tmp_path
        assert len(await _close(*given, reopen=False)) == 1
        assert np.load(tmp_path / "sum-1.npy").tolist() == made.expected([3, 4, 5])
        with pytest.raises(TooFewSurvivors):
            await _close(*given, reopen=False)


def killed(at: int, *arguments: object) -> int:
    """Return the status of a command that kills itself before a statement."""
    paths = [ROOT, ROOT / "tests", ROOT / "tests" / "support"]
    script = ROOT / "tests" / "support" / "collect_killed.py"
    done = subprocess.run(  # noqa: S603
        [sys.executable, script, str(at), *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))},
        check=False,
        timeout=120,  # only so that a deadlock fails instead of lasting
    )
    return done.returncode


@pytest.mark.large
def test_close_that_is_killed_again_and_again(
    keys: Path, helpers: tuple[object, ...], new_database: Callable[[], Databases]
) -> None:
    """Each time before another statement; what an earlier process did stays done."""
    database = new_database().where
    registry, size = ("--registry", keys / "r.json"), ("--length", 5, "--clip", 8)
    succeeded("collect", "begin", database, keys / "r.json", *size, *helpers)
    with process("collect", "serve", database, *registry, "--port", 0) as serving:
        url = address(serving, "collection")
        for name in NAMES:
            files = ("--identity", keys / f"{name}.pem", "--vector", keys / f"{name}.npy")
            trust = ("--helpers", keys / "helpers.json", "--clip", 8)
            succeeded("report", url, "--client", name, *files, *trust)
    closing = ("collect", "close", database, *registry, *helpers, "--out", keys / "sums")
    deaths = [killed(at, *closing) for at in range(2, 60, 4)]
    assert deaths.count(-signal.SIGKILL) > 5
    assert set(deaths) <= {-signal.SIGKILL, 0}
    succeeded(*closing)
    assert np.load(keys / "sums" / "sum-0.npy").tolist() == [0.75] * 5
