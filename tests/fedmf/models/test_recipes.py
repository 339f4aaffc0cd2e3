"""FedMMF's presets, and the rows of its tables."""

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from benches.papers import beyond, fedmmf4, training
from benches.papers.__main__ import app
from benches.papers.table import Run
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import SettingError
from fedmf.masks import FMMask, MeanMask, NNMask, RidgeMask
from fedmf.masks.recipes import recipe
from fedmf.models import PRESETS

KINDS = {"ridge": RidgeMask, "fm": FMMask, "nn": NNMask, "mean": MeanMask}
ROWS = {
    (table.key, row.name): row
    for table in (*fedmmf4.TABLES, *beyond.TABLES)
    for row in table.rows
}


@pytest.mark.parametrize("kind", KINDS)
def test_recipe_is_a_mask_and_a_preset(kind):
    paper, large, fast = (recipe(kind, name) for name in ("paper", "large", "fast"))
    assert isinstance(paper.mask, KINDS[kind])
    assert (paper.offset, paper.preset.model.start) == (False, "zero-mean")
    assert (large.offset, large.preset) == (True, PRESETS["large"])
    assert (fast.mask, fast.preset) == (large.mask, PRESETS["fast"])


@pytest.mark.parametrize("name", ["paper", "large", "fast"])
@pytest.mark.parametrize("kind", KINDS)
def test_changed_part_of_a_recipe_changes_no_other(kind, name):
    before = repr(recipe(kind, name))
    changed = recipe(kind, name)
    changed.preset.model.set_params(k=3)
    number = next(one for one, v in changed.mask.get_params().items() if type(v) is float)
    changed.mask.set_params(**{number: 0.75})
    assert repr(changed) != before
    assert repr(recipe(kind, name)) == before


@pytest.mark.parametrize(("mask", "preset"), [("tree", "fast"), ("ridge", "best")])
def test_unknown_names_raise_with_the_known_ones(mask, preset):
    with pytest.raises(SettingError, match=r"'tree' .* ridge, |'best' .* fast, "):
        recipe(mask, preset)


@pytest.fixture
def small(monkeypatch):
    """Let every data set be the same few ratings."""
    for module in (training, beyond):
        monkeypatch.setattr(module, "load", lambda _: simulate(30, 40, 700, seed=1))


@pytest.mark.parametrize("row", fedmmf4.TABLES[2].rows, ids=lambda row: row.name)
def test_rows_of_movielens_10m_run_without_profiles(row, monkeypatch):
    """MovieLens 10M has no profiles of the users."""
    alike = replace(simulate(30, 40, 700, seed=1), name="ml-10m")
    monkeypatch.setattr(training, "load", {"ml-10m": alike}.get)
    assert set(row.run(Run(seed=0, quick=True))) == {"RMSE", "MAE"}


@pytest.mark.parametrize("kind", ["One-order", "User-mean"])
def test_quick_run_of_a_row_depends_on_its_seed_only(small, kind):
    """A quick run of a row repeats itself and moves with the seed."""
    row = ROWS["fedmmf-4", f"{kind} FedMMF, tuned"]
    first, again, other = (row.run(Run(seed=seed, quick=True)) for seed in (1, 1, 2))
    assert first == again != other
    assert set(first) == {"RMSE", "MAE"}


def test_head_row_has_the_error_without_the_head(small):
    run = Run(seed=3, quick=True)
    figures = ROWS["beyond", "FedMF tuned + local head, 80/20"].run(run)
    below = ROWS["fedmmf-4", "FedMF, tuned"].run(run)
    assert figures["RMSE without head"] == below["RMSE"] != figures["RMSE"]


def test_local_rows_are_the_masks_alone(small):
    found = ROWS["fedmmf-4", "the user's mean"].run(Run(seed=0))
    split = random_split(load_small(), seed=0)
    means = np.array([
        split.train.of_user(user)[1].mean() for user in range(30)
    ])[split.test.users]  # fmt: skip
    assert found["RMSE"] == pytest.approx(np.sqrt(np.mean((split.test.values - means) ** 2)))


def load_small():
    return simulate(30, 40, 700, seed=1)


def test_rows_of_the_papers_table_have_its_figures():
    for key, data in (("fedmmf-4", "ml-100k"), ("fedmmf-4-lastfm", "lastfm")):
        for name, figures in fedmmf4.PUBLISHED[data].items():
            assert ROWS[key, name].paper == figures
    assert ROWS["fedmmf-4", "One-order FedMMF"].paper["RMSE"].mean == 0.9340
    large = {row.name.partition(",")[0]: row for row in fedmmf4.TABLES[2].rows}
    assert large.keys() == {*fedmmf4.PUBLISHED["ml-10m"], "FedLR", "FedFM", "FedNN"}
    for name, row in large.items():
        assert row.paper
        assert row.paper == fedmmf4.PUBLISHED["ml-10m"].get(name, row.paper)
    assert {table.key for table in fedmmf4.TABLES} == {
        "fedmmf-4", "fedmmf-4-lastfm", "fedmmf-4-ml-10m",
    }  # fmt: skip


def test_table_without_its_data_is_named_with_the_reason(monkeypatch, tmp_path):
    """A table without its data is named with the reason and no folder."""
    monkeypatch.setenv("FEDMF_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("FEDMF_CACHE", str(tmp_path / "cache"))
    arguments = ["--table", "fedmmf-4-ml-10m", "--out", str(tmp_path / "out")]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    shown = (tmp_path / "out" / "results.md").read_text()
    assert "## FedMMF, Yang et al. 2021, Table 4: MovieLens 10M\n" in shown
    assert "- all 10 rows: left out: the data set ml-10m is missing; run 'fed" in shown
    assert str(tmp_path) not in shown
