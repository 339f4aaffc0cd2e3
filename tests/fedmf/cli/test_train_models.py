"""``fedmf train`` with FedMMF's masks and with local heads."""

import json

import numpy as np
import pytest

from fedmf.bayes import FedBPMF, bpmf
from fedmf.cli import choices, models
from fedmf.data import Features, load
from fedmf.data.splits import random_split
from fedmf.models import FedMF
from fedmf.training import Trainer, rmse
from fedmf_command import call

QUICK = ("--aggregation", "plain", "--rounds", "2")


def train(*arguments):
    usual = () if "--model" in arguments else ("--model", "fedmf")
    return call("train", *QUICK, *usual, *arguments)


@pytest.mark.parametrize("model", [("--head",), ("--model", "fedmmf"), ("--model", "fedbpmf")])
def test_saved_model_has_the_printed_errors(model, tmp_path):
    done = train(*model, "--json", "--out", str(tmp_path))
    run = json.loads(done.stdout)
    test = random_split(load("simulated"), seed=0).test
    kept = models.load_model(tmp_path / "model.fedmf").predict(test.users, test.items)
    meant = run["result"]["head_rmse" if "--head" in model else "rmse"]
    assert rmse(test.values, kept) == pytest.approx(meant)
    if "--head" in model:
        assert run["result"]["head_rmse"] != run["result"]["rmse"]
    assert run["settings"]["head"] == ("--head" in model)
    assert np.ptp(kept) > 1


def test_mask_without_factor_form_deletes_older_model(tmp_path):
    """A mask that cannot be saved leaves no older model behind."""
    (tmp_path / "model.fedmf").write_text("of another run")
    done = train("--model", "fedmmf", "--mask", "nn", "--out", str(tmp_path))
    assert "model.fedmf" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curve.svg", "history.json"]


def test_masks_and_heads_use_the_items_features(monkeypatch):
    """`known_features` returns tags for Last.fm, not genres and year."""
    parts = random_split(load("simulated"), seed=0)
    known = Features(np.eye(parts.train.n_items)[:, :2].copy(), ("first", "second"))
    monkeypatch.setattr(models, "known_features", lambda ratings: known)
    recipe = choices.masked("fedmmf", "ridge")
    trainer = Trainer(recipe.preset.model, rounds=1)
    order = models.Order(masked=recipe, common={}, rounds=1)
    fitted = models.fit(trainer, models.KINDS["fedmmf"], parts, order, head=True)
    np.testing.assert_array_equal(fitted.private.features, known.matrix)
    np.testing.assert_array_equal(fitted.base.private.features, known.matrix)


@pytest.mark.parametrize("options", [("--rounds", "3"), ("--epsilon", "0")])
def test_private_model_rejects_options_with_2(options):
    done = call("train", "--model", "dpease", *options, code=2)
    assert options[0] in done.stderr


def test_large_catalogues_are_trained_by_blocks(monkeypatch):
    """The number of rounds is said, and the usual if none is given."""
    trainer = FedBPMF(rounds=60)
    assert models.suited(trainer, bpmf.LARGE, None) is None
    assert "240 rounds, each of 3 of the 16" in models.suited(trainer, bpmf.LARGE + 1, None)
    assert trainer.rounds == 240
    assert models.suited(FedBPMF(k=2), bpmf.LARGE + 1, None) is None
    assert models.suited(Trainer(FedMF()), bpmf.LARGE + 1, None) is None
    monkeypatch.setattr(bpmf, "LARGE", 10)
    done = train("--model", "fedbpmf", "--json")
    assert "2 rounds, each of 3 of the 16" in done.stderr
    assert len(json.loads(done.stdout)["history"]["rounds"]) == 2
