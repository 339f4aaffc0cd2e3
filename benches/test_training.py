"""Times of a round of training beside numpy's twins of the kernels."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from benches.conftest import Versus
from benches.plain import F64
from fedmf import FedALS, FederatedModel, FedMF, PlainSum, Trainer, _fast
from fedmf._fast import reference
from fedmf.data.sets.simulated import simulate

MODELS: dict[str, FederatedModel] = {
    "FedMF, gradient steps": FedMF(update="paper", rate=0.001),
    "FedMF, exact local solves": FedMF(),
    "FedALS": FedALS(),
}


@pytest.mark.parametrize("name", MODELS)
def test_plain_round(versus: Versus, name: str) -> None:
    """Compare a round of training with numpy's kernels, at the size of MovieLens 100K."""
    ratings = simulate(*((943, 1682, 100_000) if versus.benchmark.enabled else (60, 80, 2000)))
    trainer = Trainer(MODELS[name], PlainSum(), rounds=1)

    def compiled() -> F64:
        return trainer.fit(ratings).model_.item_factors

    def twins() -> F64:
        with patch.multiple(
            _fast, **{one: getattr(reference, one) for one in reference.__all__}
        ):
            return compiled()

    versus(f"a plain round, {name}, {ratings.values.size:,} ratings: numpy", compiled, twins)
