"""The comparison on Flower: its variants in one process, faults, figures, and a network."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr")

from flwr.app import Context, RecordDict

from benches.flower_rounds import __main__ as command
from benches.flower_rounds import faults, local, measure, report
from benches.flower_rounds.app import oneshot_server
from benches.flower_rounds.app.work import mean
from benches.flower_rounds.measure import Round, Settings
from benches.flower_rounds.variants import VARIANTS
from secagg.errors import SecAggError
from secagg.flower.testing import LocalGrid, LocalHelper
from secagg.kit.table import Strong
from secagg.kit.timing import INTERRUPTED
from secagg.oneshot import HelperJournal

EXCHANGES = {"plain": 1, "secaggplus": 4, "secagg": 4, "oneshot": 1}


@pytest.fixture(autouse=True)
def helpers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Helpers of one-shot sums in this process, in place of those that a network serves."""
    with ExitStack() as stack:
        journals = [
            stack.enter_context(HelperJournal.create(tmp_path / f"{number}.journal", "x25519"))
            for number in range(measure.HELPERS)
        ]
        keys = [[key.hex() for key in journal.public] for journal in journals]
        entries = [
            {"url": "", "suite": "x25519", "hpke": box, "ed25519": key} for box, key in keys
        ]
        (tmp_path / "helpers.json").write_text(json.dumps(entries))
        found = [LocalHelper(journal) for journal in journals]
        monkeypatch.setattr(oneshot_server, "reach_helpers", lambda _: found)
        configurations = local.configurations

        def trusting(folder: Path) -> local.Configs:
            trusted = str(tmp_path / "helpers.json")
            found = configurations(folder)
            return {node: {**own, "secagg-helpers": trusted} for node, own in found.items()}

        monkeypatch.setattr(local, "configurations", trusting)
        yield


def run(name: str, folder: Path) -> local.Finished:
    folder.mkdir(exist_ok=True)
    configs = local.configurations(folder)
    return local.run(name, LocalGrid(local.client_app(name), configs), folder)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_gives_the_mean_in_its_exchanges(name, tmp_path):
    done = run(name, tmp_path)
    assert done.error(local.NODES, local.configurations(tmp_path)) < VARIANTS[name].error
    assert done.figures["exchanges"] == EXCHANGES[name]


def test_bytes_are_those_of_the_messages(tmp_path):
    up = {name: run(name, tmp_path / name).figures["up"] for name in EXCHANGES}
    elements = len(local.NODES) * local.LENGTH
    # float32, int64, and the 33 bits of a modulus that holds the sum; keys and shares besides
    assert 4 * elements < up["plain"] < 4.1 * elements
    assert 8 * elements < up["secaggplus"] < 8.5 * elements
    assert 33 / 8 * elements < up["secagg"] < 4.5 * elements
    assert 33 / 8 * elements < up["oneshot"] < 4.5 * elements


def test_faults_of_secaggplus_and_of_secagg():
    found = faults.outcomes()
    gone, shares, clip = (
        {one.system: one.figures for one in found if one.fault == fault}
        for fault in faults.FAULTS
    )
    assert gone["secaggplus"] == {"halted": True}
    assert gone["secagg"]["error"] < VARIANTS["secagg"].error
    assert shares["secaggplus"]["gave both"] == len(local.NODES)
    assert shares["secaggplus"]["error of the node"] < 1e-2  # its values are up to 0.5
    assert shares["secagg"] == {
        "gave both for one request": 0,
        "gave both for a second request": 0,
        "refused one request": len(local.NODES),
        "refused a second request": len(local.NODES),
        "failed sums": 1,
    }
    assert min(clip[system]["error"] for system in faults.SYSTEMS) > 1
    assert "reported" not in clip["secaggplus"]
    assert 0.55 < clip["secagg"]["reported"] / local.LENGTH < 0.65  # beyond 8, of up to 20
    rows = faults.table(found).lines()
    assert [row[0] for row in rows] == list(faults.FAULTS)


def rounds(**seconds: float) -> list[Round]:
    """Rounds of these variants with 2 lengths: two a tenth off, and one as given."""
    return [
        Round(
            variant=name,
            length=length,
            run=at,
            number=1,
            seconds=factor * took,
            exchanges=4,
            down=4.0 * length,
            up=(8 if name == "secaggplus" else 4) * length,
            processor=took,
            load=1.5,
            error=1e-5,
        )
        for name, took in seconds.items()
        for length in (100, 2000)
        for at, factor in enumerate((0.9, 1.0, 1.1))
    ]


def test_table_has_medians_and_their_ratios():
    measured = rounds(plain=10.0, secaggplus=50.0, secagg=40.0)
    plain, other, own = report.table(measured, 100).lines()
    assert plain[:7] == ["plain FedAvg", "10.0 s", "9.0 s", "11.0 s", "3", "1.00", "0.20"]
    assert other[:7] == ["Flower's SecAgg+", "50.0 s", "45.0 s", "55.0 s", "3", "5.00", "1.00"]
    assert own[5:12] == ["4.00", "0.80", "4", "400 B", "0.50", "400 B", "40.0 s"]


def test_targets_are_met_or_missed():
    def judged(**seconds: float) -> list[object]:
        return [row[-1] for row in report.target_table(rounds(**seconds)).rows]

    assert judged(plain=10, secaggplus=50, secagg=49) == ["met"] * 4
    missed = Strong("missed")
    assert judged(plain=10, secaggplus=50, secagg=51) == [missed, missed, "met", "met"]
    assert judged(plain=10, secagg=51) == []
    assert judged(plain=10, oneshot=11) == ["met"] * 2
    assert judged(plain=10, oneshot=12) == [missed] * 2


class InProcess:
    """Network whose runs are over when they have begun."""

    def __init__(self, nodes: int, **_: object) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.nodes = nodes

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder)

    def left(self) -> list[int]:
        return []

    def begin(self, app: Path, **config: Any) -> int:
        assert (app / "rounds" / f"{app.name}_server.py").exists()
        server = import_module(f"benches.flower_rounds.app.{app.name}_server").app
        nodes = dict(list(local.configurations(self.folder).items())[: self.nodes])
        grid = LocalGrid(local.client_app(app.name), nodes)
        server(grid, Context(1, 1, {}, RecordDict(), config))
        return 1


def test_rounds_of_all_variants_are_measured_in_turn(monkeypatch):
    monkeypatch.setattr(measure, "Network", InProcess)
    settings = Settings(lengths=(10_000,), nodes=3, runs=2, rounds=2, poll=0.01)
    found: list[Round] = []
    shown: list[int] = []
    measure.measure(settings, found, shown.append)
    assert shown == list(range(1, settings.total + 1))
    assert [(one.run, one.length, one.variant, one.number) for one in found] == list(
        product(range(2), (10_000,), VARIANTS, (1, 2))
    )
    for one in found:
        assert one.exchanges == EXCHANGES[one.variant]
        assert 4 * one.length < one.down < 5 * one.length
        assert 0 < one.error < 2 * VARIANTS[one.variant].error


def test_wrong_model_is_found(tmp_path):
    models = np.cumsum([mean(range(3), number, 50) for number in (1, 2)], axis=0)
    for number, model in enumerate(models, 1):
        np.save(tmp_path / f"model-{number}.npy", model)
    errors = measure.model_errors(tmp_path, range(3), 2, 50)
    assert max(errors) < 1e-12
    measure.check_errors("plain", errors)
    np.save(tmp_path / "model-2.npy", models[1] + 1e-4 * (np.arange(50) == 49))
    errors = measure.model_errors(tmp_path, range(3), 2, 50)
    measure.check_errors("secaggplus", errors)
    with pytest.raises(SecAggError):
        measure.check_errors("plain", errors)


@pytest.mark.parametrize(
    ("reason", "code"), [(KeyboardInterrupt, INTERRUPTED), (SecAggError, 1)]
)
def test_ctrl_c_or_a_failed_run_prints_the_runs_so_far(
    monkeypatch, capsys, tmp_path, reason, code
):
    def interrupted(settings, found, show):
        found += rounds(plain=10.0)
        raise reason

    monkeypatch.setattr(command, "measure", interrupted)
    assert command.main(["--json", "--out", str(tmp_path)]) == code
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "flower.json").read_text())
    assert len(printed["rounds"]) == 6
    assert (tmp_path / "flower.svg").exists()


def test_lengths_and_nodes_of_the_command_line(monkeypatch, capsys):
    given: list[Settings] = []
    monkeypatch.setattr(command, "measure", lambda settings, *_: given.append(settings))
    assert command.main(["--dims", "10,20", "--nodes", "4", "--runs", "3", "--json"]) == 0
    assert command.main(["--quick", "--json"]) == 0
    assert given == [
        Settings(lengths=(10, 20), nodes=4, runs=3),
        Settings(lengths=(1000,), nodes=3, runs=1, rounds=1),
    ]


@pytest.mark.slow
def test_quick_run_on_a_network_has_all_variants(capsys):
    assert command.main(["--quick", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [one["variant"] for one in printed["rounds"]] == list(VARIANTS)
    for one in printed["rounds"]:
        assert one["exchanges"] == EXCHANGES[one["variant"]]
        assert one["seconds"] > 0
        assert one["processor"] > 0
