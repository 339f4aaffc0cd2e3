"""The examples for Flower run, and the documented diff makes an application secure."""

from __future__ import annotations

import os
import re
import shutil
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("flwr")

from fedmf import FedMF, FedMMF, Ratings, Trainer, load
from fedmf.data.splits import random_split
from fedmf.fcf import FCF, views
from fedmf.models.estimator import Estimator
from flower_examples import EXAMPLES, run_example
from flower_net import Network
from secagg.statistics import simulate

QUICKSTART = EXAMPLES / "quickstart"
PAGE = EXAMPLES.parents[1] / "docs" / "how-to" / "flower.md"
ERROR = 2**-16 + 1e-6
"""Bound on the error of an element of a mean, with that of float32."""


def accuracies(printed: str) -> list[float]:
    return [float(found) for found in re.findall(r"accuracy ([\d.]+)", printed)]


@pytest.fixture
def diff() -> str:
    """The diff of the page."""
    (found,) = re.findall(r"^```diff\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return str(found)


def undone(folder: Path, diff: str) -> None:
    """Undo a diff in the files that it names."""
    for part in diff.split("--- ")[1:]:
        names, *hunks = re.split(r"^@@.*@@\n", part, flags=re.MULTILINE)
        path = folder / names.split()[0]
        text = path.read_text()
        for hunk in hunks:
            lines = hunk.splitlines(keepends=True)
            new, old = (
                "".join(line[1:] for line in lines if line[0] in kept) for kept in (" +", " -")
            )
            assert text.count(new) == 1
            text = text.replace(new, old)
        path.write_text(text)


def test_the_diff_makes_the_quickstart_secure(
    diff: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it the nodes send their models; with it the mean is the same."""
    shutil.copytree(QUICKSTART, tmp_path / "plain")
    undone(tmp_path / "plain", diff)
    grid, plain = run_example(tmp_path / "plain", monkeypatch, 5)
    assert all(list(reply.content) == ["arrays", "metrics"] for reply in grid.replies)
    grid, secure = run_example(QUICKSTART, monkeypatch, 5)
    assert all(list(reply.content) == ["secagg"] for reply in grid.replies)
    (expected,), (found,) = (one.arrays.to_numpy_ndarrays() for one in (plain, secure))
    np.testing.assert_allclose(found, expected, rtol=0, atol=3 * ERROR)


def test_pytorch_learns_the_rings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    run_example(EXAMPLES / "pytorch", monkeypatch, 5)
    *_, last = accuracies(capsys.readouterr().out)
    assert last > 0.95


def test_sklearn_learns_the_digits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    run_example(EXAMPLES / "sklearn", monkeypatch, 8)
    first, *_, last = accuracies(capsys.readouterr().out)
    assert last > first + 0.01


@pytest.mark.parametrize("epsilon", [0.0, 20.0])
def test_digits_are_learned_with_noise(
    epsilon: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("dp_accounting")
    given = {"num-nodes": 6, "rounds": 2, "epsilon": epsilon}
    grid, _ = run_example(EXAMPLES / "privacy", monkeypatch, 6, **given)
    assert all(list(reply.content) == ["secagg"] for reply in grid.replies)
    start, *_, last = accuracies(capsys.readouterr().out)
    assert start < 0.2  # zeros recognise a single digit
    assert epsilon or last > 0.4


def test_statistics_are_exact(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = EXAMPLES / "statistics"
    run_example(folder, monkeypatch, 5)
    printed = capsys.readouterr().out
    monkeypatch.syspath_prepend(folder)
    task = import_module("hospitals.task")
    expected = simulate(task.PLAN, [task.table(i) for i in range(5)], way="plain")
    assert printed.endswith(f"{expected}\n")


def digests(printed: str) -> list[str]:
    return re.findall(r"digest (\w+)", printed)


def fitted(model: str, data: str, rounds: int) -> tuple[Estimator, Ratings]:
    """Return what the example trains, trained in this process, and the test ratings."""
    ratings = load(data)
    split = random_split(views(ratings) if model == "fcf" else ratings)
    trainer = Trainer(FedMF(), rounds=rounds)
    makers = {"fedmf": trainer, "fedmmf": FedMMF(trainer=trainer), "fcf": FCF(rounds=rounds)}
    return makers[model].fit(split.train), split.test


@pytest.mark.parametrize(
    "model", ["fedmf", *(pytest.param(m, marks=pytest.mark.large) for m in ("fedmmf", "fcf"))]
)
def test_fedmf_gives_the_digests_of_one_process(
    model: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_example(EXAMPLES / "fedmf", monkeypatch, 8, model=model, rounds=2)
    printed = capsys.readouterr().out
    alone, test = fitted(model, "simulated", 2)
    assert digests(printed) == [one.digest for one in alone.history_]
    error = np.mean((test.values - alone.predict(test.users, test.items)) ** 2)
    assert float(printed.split()[-1]) == pytest.approx(error, abs=1e-3)


network = pytest.mark.skipif(not Path("/proc").is_dir(), reason="/proc")


@network
@pytest.mark.slow
@pytest.mark.parametrize("example", ["pytorch", "sklearn"])
def test_examples_learn_on_real_nodes(example: str) -> None:
    if example == "pytorch":
        pytest.importorskip("torch")
    with Network(8) as nodes:
        patient = {} if example == "pytorch" else {"key_timeout": 300.0}
        run = nodes.begin(app=EXAMPLES / example, **patient)
        status = nodes.finish(run, seconds=1800.0)
        assert status == "finished:completed", nodes.server_log(run)
        *_, last = accuracies(nodes.server_log(run))
        assert last > 0.9


@network
@pytest.mark.slow
@pytest.mark.skipif("FEDMF_DATA" not in os.environ, reason="FEDMF_DATA names no data")
@pytest.mark.parametrize(("model", "rounds"), [("fedmf", 2), ("fedmmf", 2), ("fcf", 1)])
def test_ml_100k_on_real_nodes_gives_the_digests_of_one_process(
    model: str, rounds: int
) -> None:
    with Network(8) as nodes:
        run = nodes.begin(
            app=EXAMPLES / "fedmf",
            data="ml-100k",
            model=model,
            rounds=rounds,
            key_timeout=300.0,
        )
        status = nodes.finish(run, seconds=1800.0)
        assert status == "finished:completed", nodes.server_log(run)
        found = digests(nodes.server_log(run))
    alone, _ = fitted(model, "ml-100k", rounds)
    assert found == [one.digest for one in alone.history_]
