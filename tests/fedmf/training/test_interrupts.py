"""Ctrl-C in the third round of any `fit` keeps the two before it, and nothing of the third."""

from __future__ import annotations

import numpy as np
import pytest

from benches.papers.simulated_views import simulate_views
from fedmf.aggregate import PlainSum, RoundAborted
from fedmf.aggregate.vectors import Vectors
from fedmf.context import ContextTrainer, FedLR
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.errors import ModelError
from fedmf.fcf import FCF, FederatedCF, Implicit
from fedmf.fcf.federated import ImplicitTraining
from fedmf.masks import FedMMF
from fedmf.models import FedALS, FedMF
from fedmf.training import Trainer
from watched_sum import Watched

RATINGS, VIEWS = simulate(24, 40, 500, seed=5), simulate_views(24, 40, seed=1)
PAPER = FedMF(k=3, rate=0.005, update="paper", spread=0.3, mean=3.5, min_raters=1)
HOW = {"seed": 3, "dropout": 0.2}


class Interrupted(PlainSum):
    """A sum that Ctrl-C hits the third time: amid the local steps, or at its end."""

    def __init__(self, where, clip=64.0):
        super().__init__(clip=clip, fractional_bits=24)
        for name, value in (("where", where), ("made", [])):
            object.__setattr__(self, name, value)

    def sum(self, vectors, *, dropouts, session=b""):
        self.made.append(session)

        def compute(user):
            if self.where == "local step" and len(self.made) == 3 and user > 11:
                raise KeyboardInterrupt
            return vectors[user]

        found = super().sum(
            Vectors(vectors, compute, vectors.shape), dropouts=dropouts, session=session
        )
        if self.where == "sum" and len(self.made) == 3:
            raise KeyboardInterrupt
        return found


def factorised(model):
    return lambda by, n: Trainer(model, by, rounds=n, cohort=0.8, **HOW).fit(RATINGS)


FITS = {
    "FedMF": factorised(FedMF(k=3, mean=3.5)),
    "FedALS": factorised(FedALS(k=3, mean=3.5)),
    "FedMMF": lambda by, n: FedMMF(trainer=Trainer(PAPER, by, rounds=n, **HOW)).fit(RATINGS),
    "FedLR": lambda by, n: ContextTrainer(FedLR(), by, rounds=n, **HOW).fit(
        RATINGS, items=item_features(RATINGS)
    ),
    "FCF": lambda by, n: FCF(Implicit(k=3), by, rounds=n, steps=1, **HOW).fit(VIEWS),
    "FCF, one epoch": lambda by, n: FCF(Implicit(k=3), by, rounds=1, steps=n, **HOW).fit(VIEWS),
    "FederatedCF": lambda by, n: FederatedCF(Implicit(k=3), by, rounds=n, **HOW).fit(VIEWS),
}


@pytest.mark.parametrize("where", ["local step", "sum"])
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS.keys())
def test_fit_interrupted_in_round_3_is_one_of_2_rounds(fit, where):
    by = Interrupted(where)
    cut, whole = fit(by, 9), fit(PlainSum(clip=64.0, fractional_bits=24), 2)
    assert len(by.made) == 3
    assert (cut.history_.interrupted, whole.history_.interrupted) == (True, False)
    assert [one.digest for one in cut.history_] == [one.digest for one in whole.history_]
    assert all(one.digest for one in cut.history_)
    users, items = np.indices((24, 40)).reshape(2, -1)
    assert cut.predict(users, items).tobytes() == whole.predict(users, items).tobytes()


def test_fit_interrupted_in_the_mean_predicts_from_the_start():
    by = Interrupted("sum")
    by.made.extend([b"", b""])
    cut = factorised(FedMF(k=3))(by, 9)
    assert by.made[2:] == [b"fedmf mean 1"]
    assert (cut.history_.interrupted, len(cut.history_)) == (True, 0)
    assert np.isfinite(cut.predict([0, 1], [2, 3])).all()


@pytest.mark.parametrize("n_lost", [0, 2])
@pytest.mark.parametrize("system", [FCF, FederatedCF])
def test_implicit_fit_interrupted_before_a_sum_is_unfitted(system, n_lost):
    outcomes = [*[RoundAborted("too few")] * n_lost, KeyboardInterrupt()]
    model = system(Implicit(k=3), Watched(*outcomes), min_raters=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(VIEWS)
    assert not any(name.endswith("_") for name in vars(model))
    with pytest.raises(ModelError):
        model.predict([0], [0])


@pytest.mark.parametrize("system", [FCF, FederatedCF])
def test_second_interrupt_in_the_last_solve_keeps_the_sums(system, monkeypatch):
    def stop(record):
        if record.round == 3:
            monkeypatch.setattr(ImplicitTraining, "with_users", again)
            raise KeyboardInterrupt

    def again(training, y, centre):
        raise KeyboardInterrupt

    settings = {"steps": 9} if system is FCF else {}
    model = system(Implicit(k=3), rounds=9, callbacks=[stop], **settings)
    with pytest.raises(KeyboardInterrupt):
        model.fit(VIEWS)
    monkeypatch.undo()
    whole = system(
        Implicit(k=3), **({"rounds": 1, "steps": 3} if settings else {"rounds": 3})
    ).fit(VIEWS)
    assert model.history_.interrupted
    assert [one.digest for one in model.history_] == [one.digest for one in whole.history_]
    np.testing.assert_array_equal(model.model_.item_factors, whole.model_.item_factors)
    assert np.isfinite(model.predict([0, 1], [2, 3])).all()
