"""Numbers of numpy become Python's, and wrong parts raise setting errors."""

import json
from dataclasses import asdict

import numpy as np
import pytest

from benches.papers.centralised import SVD
from fedmf.aggregate import PlainSum
from fedmf.context import ContextTrainer, FedFM, FedLR, FedNN
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import SettingError
from fedmf.fcf import Implicit, ranking
from fedmf.masks import FMMask, LocalHead, MeanMask, NNMask, RidgeMask
from fedmf.models import FedALS, FedMF
from fedmf.models.dp import DPFedMF, noise_multiplier
from fedmf.training import Adam, Descent, Schedule, Trainer


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (FedMF, {"k": 20, "reg": 0.5, "rate": 0.25, "spread": 2.0, "min_raters": 9}),
        (DPFedMF, {"k": 20, "rate": 0.25}),
        (FedALS, {"k": 20, "reg": 0.5, "spread": 0.25, "min_raters": 9}),
        (FedLR, {"rate": 0.5, "reg": 0.25}),
        (FedFM, {"k": 20, "spread": 0.5}),
        (FedNN, {"hidden": 20, "rate": 0.5}),
        (MeanMask, {"shrink": 0.5}),
        (RidgeMask, {"penalty": 0.5}),
        (FMMask, {"k": 20, "l2": 0.5, "rate": 0.25, "steps": 9}),
        (NNMask, {"hidden": 20, "l2": 0.5, "rate": 0.25, "steps": 9}),
        (LocalHead, {"penalty": 0.5}),
        (Implicit, {"k": 20, "alpha": 2.0, "reg": 0.5, "spread": 0.25}),
        (Adam, {"rate": 0.5, "beta1": 0.25, "beta2": 0.5, "epsilon": 2.0}),
        (Descent, {"rate": 0.5}),
        (Schedule, {"seed": 9, "cohort": 0.5, "dropout": 0.25}),
        (Schedule, {"cohort": 20}),
        (Schedule, {"cohort": 0.1}),  # in 32 bits a hair more: of 6040 one user more
        (PlainSum, {"clip": 8.5, "fractional_bits": 12}),
    ],
)
def test_numpy_numbers_become_pythons(kind, settings):
    of_numpy = {
        name: np.int8(value) if isinstance(value, int) else np.float32(value)
        for name, value in settings.items()
    }
    assert json.dumps(asdict(kind(**of_numpy))) == json.dumps(asdict(kind(**settings)))
    for name in settings:
        with pytest.raises(SettingError, match=name):
            kind(**{name: np.bool_(True)})


def test_objects_without_dataclass_convert_numbers_too():
    for made in (Trainer(rounds=np.int8(9)), ContextTrainer(FedLR(), rounds=np.int8(9))):
        assert type(made.rounds) is int
    svd = SVD(k=np.int8(9), rate=np.float32(0.5))
    assert (type(svd.k), type(svd.rate)) == (int, float)


def test_functions_compute_with_pythons_numbers():
    """In 8 bits 127 + 1 wraps; in 32 z would be another."""
    split = random_split(simulate(24, 128, 900, seed=5), seed=1)
    factors = Trainer(FedMF(k=2), rounds=1).fit(split.train).model_
    judged = [ranking(factors, split.test, split.train, k) for k in (127, np.int8(127))]
    assert judged[0] == judged[1]
    pythons = noise_multiplier(1.5, 2.0**-17, 100, sampling_rate=0.25)
    numpys = noise_multiplier(
        np.float32(1.5), np.float32(2.0**-17), np.int8(100), sampling_rate=np.float32(0.25)
    )
    assert (type(numpys), numpys) == (float, pythons)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Trainer(FedMF(), FedMF()), r"aggregation = FedMF\(.* SecAggSum\("),
        (lambda: Trainer(PlainSum()), r"model = PlainSum\(.* FedMF\("),
        (lambda: Trainer(FedLR()), r"model = FedLR\(.*ContextTrainer"),
        (lambda: ContextTrainer(FedMF()), r"model = FedMF\(.* FedLR\(\).* Trainer$"),
        (lambda: ContextTrainer("FedLR"), r"model = 'FedLR' .*FedLR\(\)"),
        (lambda: ContextTrainer(FedLR), r"model = <class .*FedLR\(\)"),
        (lambda: ContextTrainer(FedLR(), "secagg"), "aggregation = 'secagg'"),
        (lambda: Trainer(callbacks=print), r"callbacks = <.* \[print\]"),
        (lambda: Trainer(callbacks=[3]), r"callbacks = \[3\]"),
        (lambda: Adam(beta1="0.5"), "beta1 = '0.5'"),
        (lambda: noise_multiplier("1", 1e-5, 1), "epsilon = '1'"),
        (lambda: noise_multiplier(1.0, 1e-5, 1, sampling_rate="1"), "sampling_rate = '1'"),
    ],
)
def test_parts_of_wrong_types_raise_setting_errors(make, message):
    with pytest.raises(SettingError, match=message):
        make()


def test_trainers_show_their_settings():
    assert repr(Trainer(FedMF(), PlainSum(), rounds=2, seed=3, cohort=0.5, dropout=0.1)) == (
        f"Trainer({FedMF()!r}, {PlainSum()!r}, rounds=2, seed=3, cohort=0.5, dropout=0.1)"
    )
    trainer = ContextTrainer(FedLR(), seed=3, cohort=4, dropout=0.1)
    assert repr(trainer).startswith("ContextTrainer(FedLR(")
    assert (trainer.seed, trainer.cohort, trainer.dropout) == (3, 4, 0.1)
