"""A collection as an operator runs it: helpers, processes beside a database, and clients."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cli_processes import ROOT, address, invoke, process, until
from collect_parts import Databases
from secagg.cli.closing import Closing

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


def recorded(calls: list[str], method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that also notes its calls."""

    def call(*arguments: Any, **settings: Any) -> Any:
        calls.append(method.__name__)
        return method(*arguments, **settings)

    return call


@pytest.mark.large
def test_commands_of_a_collection(
    keys: Path, helpers: tuple[object, ...], new_database: Callable[[], Databases]
) -> None:
    database = new_database().where
    registry = ("--registry", keys / "r.json")
    size = ("--length", 5, "--clip", 8)
    begun = succeeded("collect", "begin", database, keys / "r.json", *size, *helpers)
    (batch,) = succeeded("collect", "status", database)["batches"]  # type: ignore[misc]
    assert (batch["state"], batch["reports"]) == ("open", 0)
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
        found = {"out": path, "batch": 0, "outcome": "full", "reports": 3, "survivors": 3}
        assert succeeded(*closing) == {"sums": [found | {"missing": []}]}
        assert np.load(path).tolist() == [0.75] * 5
        assert succeeded(*closing) == {"sums": []}
        w.terminate()
        assert w.wait(60) == 0
    (batch,) = succeeded("collect", "status", database)["batches"]  # type: ignore[misc]
    assert (batch["state"], batch["reports"], batch["slices_left"]) == ("done", 3, 0)


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


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("--reports", 3)], ids=["once", "staying"])
def test_close_that_is_killed_again_and_again(
    keys: Path,
    helpers: tuple[object, ...],
    new_database: Callable[[], Databases],
    more: tuple[object, ...],
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
    deaths = [killed(at, *closing, *more) for at in range(2, 60, 8 if more else 4)]
    assert deaths.count(-signal.SIGKILL) > 5
    assert set(deaths) <= {-signal.SIGKILL, 0}
    succeeded(*closing, "--batch", 0)
    assert np.load(keys / "sums" / "sum-0.npy").tolist() == [0.75] * 5
    (record,) = succeeded("verify", keys / "sums")["records"]  # type: ignore[misc]
    assert (record["outcome"], record["clients"]) == ("full", sorted(NAMES))


@pytest.mark.large
def test_batches_of_a_process_that_stays(
    keys: Path, helpers: tuple[object, ...], new_database: Callable[[], Databases]
) -> None:
    """It is killed once, and ends in order at a signal."""
    database, out = new_database().where, keys / "sums"
    registry, columns = ("--registry", keys / "r.json"), ("--columns", "visits,deaths")
    size = ("--integers", "--clip", 100, "--min-clients", 3, "--noise", 2)
    begun = succeeded("collect", "begin", database, keys / "r.json", *size, *columns, *helpers)
    assert begun["noise"] == 2
    (keys / "counts.csv").write_text("visits,deaths\n30,1\n")
    (keys / "wrong.csv").write_text("deaths,visits\n1,30\n")
    closing = ("collect", "close", database, *registry, *helpers, "--out", out)
    staying = (*closing, "--reports", 3, "--every", "month", "--json", "--log-json")
    with (
        process("collect", "serve", database, *registry, "--port", 0) as serving,
        process(*staying) as killed_,
    ):
        until(killed_, ".*closing batches.*")
        killed_.kill()
        url = address(serving, "collection")
        trust = ("--helpers", keys / "helpers.json", "--integers", "--clip", 100)
        for name in NAMES:
            client = ("report", url, "--client", name, "--identity", keys / f"{name}.pem")
            budget = ("--budget", 9, "--ledger", keys / f"{name}.ledger")  # for more noise
            for refused in (
                ("counts.csv", "--min-clients", 4),
                ("wrong.csv",),
                ("counts.csv", *budget),
            ):
                file, *more = refused
                wrong = invoke(*client, "--vector", keys / file, *trust, *more)
                assert wrong.exit_code == 2
            succeeded(*client, "--vector", keys / "counts.csv", *trust)
    with process(*staying) as again:
        assert again.stdout is not None
        while not (out / "record-0000.json").exists():
            assert again.poll() is None
        again.send_signal(signal.SIGTERM)
        shown, _ = again.communicate()
        assert again.returncode == 0
    assert json.loads(shown)["out"] == str(out / "sum-0.csv")
    names, numbers = (out / "sum-0.csv").read_text().splitlines()
    assert names == "visits,deaths"
    assert abs(int(numbers.split(",")[0]) - 90) < 60, "noise of two seeds"
    assert invoke("collect", "drop", database, 0).exit_code == 2
    assert succeeded("collect", "drop", database, 1)["outcome"] == "dropped"
    found = succeeded("collect", "status", database)["batches"]
    assert [batch["dropped"] for batch in found] == [False, True]  # type: ignore[attr-defined]
    assert invoke(*closing, "--batch", 1).exit_code == 2
    succeeded(*closing)  # the signal may have come before the reports were dropped
    calls = list[str]()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("once", "forget"):
            patch.setattr(Closing, name, recorded(calls, getattr(Closing, name)))
        assert succeeded(*closing, "--keep", 0)["sums"] == []
    assert calls == ["once", "forget"], "an altered row of an old session keeps no sum back"
    assert succeeded("collect", "status", database) == {"batches": []}
    for at_odds in (("--reports", 1), ("--reports", 3, "--reopen"), ("--keep", -1)):
        assert invoke(*closing, *at_odds).exit_code == 2
