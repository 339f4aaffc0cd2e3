"""The grid in one process: folders of its own, names in the log, errors of the project."""

from __future__ import annotations

import gc
import itertools
import logging
from pathlib import Path

import pytest
from flwr.app import Context, Message

from flower_nodes import NODES, assert_mean, configs, run, secure_app, train, wrapped
from secagg import ParameterError
from secagg.flower import grid as grids
from secagg.flower.testing import LocalGrid

BARE = {node: {} for node in NODES}


def folder_of(grid: LocalGrid, node: int = NODES[0]) -> Path:
    return Path(str(grid.contexts[node].node_config["secagg-state-dir"]))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLWR_HOME", str(tmp_path))
    return tmp_path


def new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grids, "_NUMBERS", itertools.count(1))


def test_grids_without_folders_run_after_each_other(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the numbers nor the bounds of the first grid are there in the second."""
    kept = []
    for given in ({}, {"max_weight": 7}):
        new_process(monkeypatch)
        kept.append(LocalGrid(secure_app(), BARE))
        assert_mean(run(kept[-1], wrapped(**given)).arrays, NODES)
    folders = [folder_of(grid) for grid in kept]
    assert folders[0] != folders[1]
    assert all(folder.is_dir() for folder in folders)
    assert not list(home.iterdir())
    assert not any(BARE.values())
    kept.clear()
    gc.collect()
    assert not any(folder.exists() for folder in folders)


def test_a_folder_that_is_given_stays(tmp_path: Path) -> None:
    given = {"secagg-state-dir": str(tmp_path / "own")}
    grid = LocalGrid(secure_app(), {**BARE, NODES[0]: given})
    run(grid)
    assert folder_of(grid) == tmp_path / "own"
    others = folder_of(grid, NODES[1])
    assert others != tmp_path / "own"
    del grid
    gc.collect()
    assert (tmp_path / "own").is_dir()
    assert not others.exists()


@pytest.mark.parametrize("kind", ["raises", "refuses", "lowers"])
def test_lines_of_the_log_name_their_node(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    def reply(message: Message, context: Context) -> Message:
        if kind == "raises":
            raise ValueError("100 %s")
        return train(message, context)

    strategy = wrapped(max_weight=1 if kind == "lowers" else 100, on_failure="skip")
    nodes = configs()
    if kind == "refuses":
        nodes = {node: {**config, "secagg-min-clients": 9} for node, config in nodes.items()}
    with caplog.at_level(logging.WARNING, "flwr.secagg"):
        run(LocalGrid(secure_app(train=reply), nodes), strategy)
    lines = [one.getMessage() for one in caplog.records]
    named = {line.partition(":")[0] for line in lines if line.startswith("node ")}
    expected = NODES if kind != "lowers" else NODES[1:]
    assert named == {f"node {node}" for node in expected}
    assert not logging.getLogger("flwr.secagg").filters


@pytest.mark.parametrize("node", [0, 2, 10, 16, -1, 1 << 64, "11", None, 11.5, (11,)])
def test_an_unknown_node_cannot_drop_out(node: object) -> None:
    with pytest.raises(
        ParameterError,
    ):
        LocalGrid(secure_app(), configs()).drop(node)


@pytest.mark.parametrize("after", [-1, 0.5, "1", None, True])
def test_a_node_answers_a_number_of_messages(after: object) -> None:
    with pytest.raises(ParameterError):
        LocalGrid(secure_app(), configs()).drop(NODES[0], after)
