"""Numbers of numpy become Python's, and wrong parts raise setting errors."""

import numpy as np
import pytest

from fedmf.context import ContextTrainer, FedLR
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.errors import SettingError
from fedmf.fcf import ranking
from fedmf.models import FedMF
from fedmf.models.dp import noise_multiplier
from fedmf.training import Trainer


def test_functions_compute_with_pythons_numbers():
    """In 8 bits 127 + 1 wraps; in 32 z would be another."""
    split = random_split(simulate(24, 128, 900, seed=5), seed=1)
    factors = Trainer(FedMF(k=2), rounds=1).fit(split.train).model_
    judged = [ranking(factors, split.test, split.train, k) for k in (127, np.int8(127))]
    assert judged[0] == judged[1]
    pythons = noise_multiplier(1.5, 2.0**-17, 100)
    numpys = noise_multiplier(np.float32(1.5), np.float32(2.0**-17), np.int8(100))
    assert (type(numpys), numpys) == (float, pythons)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Trainer(FedMF(), FedMF()),
        lambda: Trainer(FedLR()),
        lambda: ContextTrainer(FedMF()),
        lambda: ContextTrainer(FedLR),
        lambda: Trainer(callbacks=print),
        lambda: Trainer(callbacks=[3]),
        lambda: noise_multiplier(1.0, 1e-5, 1, sampling_rate="1"),
    ],
)
def test_parts_of_wrong_types_raise_setting_errors(make):
    with pytest.raises(SettingError):
        make()
