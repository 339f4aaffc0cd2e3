"""``fedmf train`` with FedMMF's masks and with local heads."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from fedmf.bayes import Posterior
from fedmf.cli import app, choices
from fedmf.cli.choices import MaskName, ModelName
from fedmf.data import Features, load
from fedmf.data.splits import random_split
from fedmf.ease import ItemWeights
from fedmf.models import Factors
from fedmf.training import Trainer, rmse
from secagg import _fast

draws_millions = pytest.mark.skipif(
    not _fast.COMPILED, reason="draws the noise of 300 users, for minutes in Python"
)
QUICK = ("--aggregation", "plain", "--rounds", "2")


def named(arguments):
    """Return the arguments with the model fedmf, unless they name another."""
    return arguments if "--model" in arguments else ("--model", "fedmf", *arguments)


def train(*arguments):
    return CliRunner().invoke(app, ["train", *QUICK, *named(arguments)])


@pytest.mark.parametrize(
    "model",
    [
        ("--head",),
        ("--model", "fedmmf"),
        pytest.param(("--model", "fedmmf", "--mask", "fm", "--head"), marks=pytest.mark.large),
    ],
)
def test_saved_model_has_the_printed_errors(model, tmp_path):
    done = train(*model, "--json", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    run = json.loads(done.stdout)
    test = random_split(load("simulated"), seed=0).test
    kept = Factors.load(tmp_path / "model.fedmf").predict(test.users, test.items)
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
    assert done.exit_code == 0
    assert "model.fedmf" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["curve.svg", "history.json"]


def test_summary_has_the_errors_with_heads():
    assert "with local heads" in train("--head").stdout
    assert "with local heads" not in train().stdout


def test_mask_with_fedmf_exits_with_2():
    done = train("--mask", "fm")
    assert done.exit_code == 2
    assert all(part in done.stderr for part in ("--mask fm", "--model fedmf", " fedmmf"))


def test_masks_and_heads_use_the_items_features(monkeypatch):
    """`known_features` returns tags for Last.fm, not genres and year."""
    parts = random_split(load("simulated"), seed=0)
    known = Features(np.eye(parts.train.n_items)[:, :2].copy(), ("first", "second"))
    monkeypatch.setattr(choices, "known_features", lambda ratings: known)
    preset, recipe = choices.chosen(ModelName.FEDMMF, MaskName.RIDGE, "fast")
    trainer = Trainer(preset.model, rounds=1)
    fitted = choices.fit(trainer, parts, recipe, head=True)
    np.testing.assert_array_equal(fitted.private.features, known.matrix)
    np.testing.assert_array_equal(fitted.base.private.features, known.matrix)


def test_bayesian_model_is_the_default_and_is_saved(tmp_path):
    """The file has the printed errors, and `Posterior` reads it."""
    arguments = ("train", *QUICK, "--factors", "2", "--json", "--out", str(tmp_path))
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    run = json.loads(done.stdout)
    assert run["settings"]["model"] == "fedbpmf"
    test = random_split(load("simulated"), seed=0).test
    kept = Posterior.load(tmp_path / "model.fedmf").predict(test.users, test.items)
    assert rmse(test.values, kept) == pytest.approx(run["result"]["rmse"])


@draws_millions
def test_private_model_is_ranked_and_saved(tmp_path):
    """The file of DPEase is of another kind, and `recommend` and `export` read it."""
    arguments = ("--aggregation", "plain", "--model", "dpease", "--epsilon", "4")
    out = ("--json", "--out", str(tmp_path))
    done = CliRunner().invoke(app, ["train", *arguments, *out])
    assert done.exit_code == 0, done.output
    run = json.loads(done.stdout)
    assert run["settings"]["hyper_parameters"]["epsilon"] == 4
    assert run["result"]["ranking"]["precision"] > 0.1
    model = ItemWeights.load(tmp_path / "model.fedmf")
    done = CliRunner().invoke(app, ["recommend", str(tmp_path), "--user", "7", "--json"])
    assert done.exit_code == 0, done.output
    shown = json.loads(done.stdout)
    assert shown["ranks"]
    user = model.user_ids.tolist().index(7)
    items = model.item_ids[model.recommend(user)[0]].tolist()
    assert [one["item"] for one in shown["items"]] == items
    target = tmp_path / "factors.npz"
    done = CliRunner().invoke(app, ["export", str(tmp_path), "--out", str(target)])
    assert done.exit_code == 0, done.output


@draws_millions
def test_private_model_records_its_usual_epsilon():
    arguments = ("train", "--aggregation", "plain", "--model", "dpease")
    run = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert (run["settings"]["epsilon"], run["settings"]["delta"]) == (8.0, 1e-5)
    assert re.search("noise +ε = 8, δ = 1e-05", CliRunner().invoke(app, arguments).stdout)


@draws_millions
def test_private_model_has_noise_for_dropouts():
    """Those who stay add the noise of those who drop out."""
    arguments = ("train", "--aggregation", "plain", "--model", "dpease", "--dropout", "0.1")
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    run = json.loads(done.stdout)
    assert run["settings"]["hyper_parameters"]["honest"] == 0.8
    assert run["result"]["survivors_per_round"] < 300


@pytest.mark.parametrize(
    "options", [("--rounds", "3"), ("--epsilon", "0"), ("--min-raters", "4")]
)
def test_private_model_rejects_options_with_2(options):
    done = CliRunner().invoke(app, ["train", "--model", "dpease", *options])
    assert done.exit_code == 2
    assert options[0] in done.stderr


@pytest.mark.parametrize("option", [("--preset", "fast"), ("--head",), ("--reg", "0.1")])
def test_option_of_another_model_exits_with_2(option):
    done = CliRunner().invoke(app, ["train", *QUICK, *option])
    assert done.exit_code == 2
    assert option[0] in done.stderr
    assert "--model fedmf" in done.stderr


@pytest.mark.parametrize("model", ["implicit", "fcf"])
def test_models_of_views_have_32_factors_by_default(model):
    arguments = ("train", "--model", model, "--aggregation", "plain", "--rounds", "1", "--json")
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["settings"]["hyper_parameters"]["k"] == 32
