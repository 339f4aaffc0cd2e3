"""``fedmf export``: names of files and formats."""

from __future__ import annotations

import numpy as np
import pytest

from fedmf.data import load
from fedmf.models import Factors
from fedmf_command import call

RATINGS = load("simulated")


@pytest.fixture
def model(tmp_path):
    p, q = np.ones((RATINGS.n_users, 1)), np.ones((RATINGS.n_items, 1))
    path = tmp_path / "model.fedmf"
    Factors.of(p, q, RATINGS).save(path)
    return path


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("b.csv", None),
        ("b.csv", "parquet"),
        ("b.csv", "implicit"),
        ("b.parquet", None),
        ("b.npz", "parquet"),
    ],
)
def test_name_of_another_format_exits_with_2_and_writes_nothing(name, form, model, tmp_path):
    to = () if form is None else ("--to", form)
    out = tmp_path / name
    done = call("export", model, "--out", out, *to, code=2)
    assert done.stdout == ""
    assert name in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["model.fedmf"]


@pytest.mark.parametrize("name", ["b.npz", "my.model"])
def test_other_names_get_the_suffix(name, model, tmp_path):
    call("export", model, "--out", tmp_path / name)
    assert (tmp_path / f"{name.removesuffix('.npz')}.npz").exists()
