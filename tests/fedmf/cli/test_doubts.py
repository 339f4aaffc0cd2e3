"""Warnings of ``fedmf train`` about models that are no better than their baseline."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from fedmf.cli.doubts import doubts
from fedmf.data import from_triples
from fedmf_command import call

SHARED = from_triples([1, 2, 3], [7, 7, 8], [1, 2, 3], scale=(1, 5))


invoke = partial(call, "train", "--aggregation", "plain")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Ratings of 12 users, each of films of their own."""
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("one") / "one.csv"
    rows = [f"u{film // 5},film {film},{rng.integers(1, 6)}" for film in range(60)]
    path.write_text("\n".join(["user,item,rating", *rows]) + "\n")
    return path


@pytest.mark.parametrize(
    "options", [("fedlr",), ("fedals", "--min-raters", "1"), ("implicit", "--min-raters", "1")]
)
def test_one_rater_of_each_item_warns(options, table, tmp_path):
    quick = ("--data", table, "--scale", "1,5", "--rounds", 3, "--out", tmp_path)
    done = invoke(*quick, "--model", *options)
    assert "warning: no item of one.csv has two raters" in done.stderr


@pytest.mark.parametrize(
    ("result", "ranks", "named"),
    [
        ({"rmse": 1.09996, "mean_rmse": 1.1}, False, "not below"),
        ({"rmse": 1.0999, "mean_rmse": 1.1}, False, None),
        ({"rmse": 0.06, "mean_rmse": 1e-17}, False, "train --model implicit"),
        ({"rmse": float("nan"), "mean_rmse": 1.1}, False, "not below"),
        ({"rmse": 1.2, "head_rmse": 1.0, "mean_rmse": 1.1}, False, None),
        ({"rmse": 1.0, "head_rmse": 1.2, "mean_rmse": 1.1}, False, "1.2000"),
        ({"rmse": 1.0, "mean_rmse": 1.1, "precision": (0.1, 0.2)}, False, None),
        ({"precision": (0.20004, 0.2)}, True, "not above"),
        ({"precision": (0.2001, 0.2)}, True, None),
        ({"rmse": None}, True, None),  # an interrupt came before the measures
        ({"rmse": 1.0}, False, None),
        ({"rmse": None, "mean_rmse": 1.1}, False, None),
    ],
)
def test_model_that_is_no_better_than_its_baseline_warns(result, ranks, named):
    given = dict(result)
    if "precision" in given:
        own, other = given.pop("precision")
        given |= {"ranking": {"precision": own}, "popularity": {"precision": other}}
    found = list(doubts(given, SHARED, ranks=ranks))
    assert len(found) == (named is not None)
    assert named is None or named in found[0]
