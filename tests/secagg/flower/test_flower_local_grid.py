"""The grid in one process: folders of its own, names in the log, errors of the project."""

from __future__ import annotations

import gc
import itertools
import logging
from pathlib import Path

import pytest

from flower_nodes import NODES, assert_mean, configs, run, secure_app, wrapped
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


def test_lines_of_the_log_name_their_node(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "flwr.secagg"):
        run(LocalGrid(secure_app(), configs()), wrapped(max_weight=1))
    named = {line.partition(":")[0] for line in caplog.messages if line.startswith("node ")}
    assert named == {f"node {node}" for node in NODES[1:]}
    assert not logging.getLogger("flwr.secagg").filters


@pytest.mark.parametrize("node", [16, -1, "11", None])
@pytest.mark.parametrize("after", [0, -1, 0.5, None, True])
def test_only_a_node_of_the_grid_drops_out_after_a_number(node: object, after: object) -> None:
    grid = LocalGrid(secure_app(), configs())
    with pytest.raises(ParameterError):
        grid.drop(node, 0)
    with pytest.raises(ParameterError):
        grid.drop(node if after == 0 else NODES[0], after)
