"""Any affine change of the scale gives the same models, and a lost training raises."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

from fedmf.aggregate import PlainSum, RoundAborted
from fedmf.aggregate.vectors import Aggregate, Rows
from fedmf.bayes import FedBPMF
from fedmf.context import ContextTrainer, FedFM, FedLR
from fedmf.data import from_triples
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from fedmf.dp import DPFedMF
from fedmf.errors import Diverged, SettingError
from fedmf.masks import FedMMF, LocalHead, MeanMask, NNMask, RidgeMask
from fedmf.models import Factors, FedALS, FedMF
from fedmf.settings import Settings
from fedmf.training import Schedule, Trainer, rmse
from fedmf.training.loop import Loop
from fedmf.training.steps import Means
from watched_sum import Watched

SCALES = ((0.0, 1.0), (-10.0, 1000.0))
STEPS = FedMF(k=3, rate=0.005, update="paper")
ZERO = replace(STEPS, start="zero-mean", spread=0.3)
WIDE = PlainSum(clip=64.0)


@pytest.fixture(scope="module")
def split():
    return random_split(simulate(24, 40, 500, seed=5), seed=1)


def scaled(ratings, scale):
    """Return the ratings, of 1 to 5, on another scale."""
    low, high = scale
    values = low + (ratings.values - 1) * ((high - low) / 4)
    return ratings.with_values(np.clip(values, low, high), scale)


def factorised(model, aggregation=WIDE):
    return lambda train, test: Trainer(model, aggregation, rounds=5).fit(train, test)


def noisy(train, test):
    entropy = np.random.default_rng(1).bytes
    return DPFedMF(WIDE, where="central", entropy=entropy).fit(train, test)


def masked(mask, *, offset=True):
    model = FedMF(k=3) if offset else ZERO
    trainer = Trainer(model, WIDE, rounds=5)
    return lambda train, test: FedMMF(mask, trainer, offset=offset).fit(train, test)


def headed(train, test):
    return LocalHead().fit(factorised(FedMF(k=3))(train, test).model_, train)


def on_a_mask(train, test):
    whole = LocalHead().fit(masked(RidgeMask())(train, test).model_, train)
    return whole if train.scale == (1.0, 5.0) else whole.factors()  # as files have it


def contextual(model):
    return lambda train, test: ContextTrainer(model, WIDE, rounds=20).fit(
        train, items=item_features(train)
    )


FITS = {
    "FedMF": factorised(FedMF(k=3)),
    "FedMF, biases": factorised(FedMF(k=3, biases=True)),
    "FedMF, gradient steps": factorised(STEPS),
    "FedMF, zero-mean": factorised(ZERO),
    "FedALS": factorised(FedALS(k=3)),
    "FedBPMF": lambda train, test: FedBPMF(k=2, rounds=6, burn_in=2).fit(train, test),
    "DPFedMF": noisy,
    "FedMMF, ridge": masked(RidgeMask()),
    "FedMMF, networks": masked(NNMask(steps=20)),
    "FedMMF, means": masked(MeanMask(shrink=2.0)),
    "LocalHead": headed,
    "LocalHead on FedMMF": on_a_mask,
    "FedLR": contextual(FedLR(reg=0.01)),
    "FedFM": contextual(FedFM(reg=0.01)),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS.keys())
def test_affine_scales_give_the_same_predictions(split, fit):
    """Also the errors of the history, in units of each scale."""
    users, items = np.indices((24, 40)).reshape(2, -1)
    one = fit(split.train, split.test)
    meant = one.predict(users, items)
    for low, high in SCALES:
        unit = (high - low) / 4
        train, test = (scaled(part, (low, high)) for part in (split.train, split.test))
        found = fit(train, test)
        assert found.scale == (low, high)
        np.testing.assert_allclose(
            1 + (found.predict(users, items) - low) / unit, meant, atol=1e-3
        )
        if hasattr(found, "history_") and found.history_.last.train_rmse is not None:
            for name in ("train_rmse", "test_rmse", "test_mae"):
                errors = (getattr(each.history_.last, name) for each in (found, one))
                assert next(errors) / unit == pytest.approx(next(errors), abs=1e-3)
            guesses = found.predict(train.users, train.items)
            error = rmse(train.values, guesses)
            assert found.history_.last.train_rmse == pytest.approx(error)


def test_unscaled_base_of_a_head_predicts_public_ratings(split):
    """Factors of older files have no scale."""
    train = scaled(split.train, (0.0, 100.0))
    base = Factors.of(np.ones((24, 1)), np.full((40, 1), 60.0), train)
    whole = LocalHead().fit(base, train)
    users, items = np.indices((24, 40)).reshape(2, -1)
    guesses = whole.predict(users, items)
    assert rmse(train.values, whole.predict(train.users, train.items)) < 25
    np.testing.assert_allclose(whole.factors().predict(users, items), guesses)


@pytest.mark.parametrize("scale", [(1.0, 5.0), (0.0, 100.0)])
def test_training_error_beyond_the_scale_raises(split, scale):
    """All numbers are finite; the remedy is the model's."""
    train = scaled(split.train, scale)
    with pytest.raises(Diverged, match=r"rate = 0\.05 "):
        Trainer(replace(STEPS, rate=0.05), PlainSum(clip=2.0**40), rounds=4).fit(train)
    with pytest.raises(Diverged, match=r"rate = 99\.0 "):
        ContextTrainer(FedLR(rate=99.0), PlainSum(clip=2.0**20), rounds=4).fit(
            train, items=item_features(train)
        )


def test_high_ratings_far_from_a_zero_start_do_not_raise(split):
    """Predictions of 0 are farther from ratings of 5 than 1 is."""
    high = split.train.with_values(np.full(split.train.n_ratings, 5.0), (1.0, 5.0))
    found = Trainer(replace(ZERO, rate=1e-4), rounds=2).fit(high)
    assert 4 < found.history_.last.train_rmse < 5.1


def test_many_clipped_elements_raise_and_few_do_not(split):
    """Whatever the scale, as gradients are in units of the internal one."""
    for scale in ((1.0, 5.0), (0.0, 100.0)):
        train = scaled(split.train, scale)
        with pytest.raises(SettingError, match="more than 1%"):
            Trainer(FedMF(k=3), PlainSum(clip=0.5), rounds=3).fit(train)
        found = Trainer(FedMF(k=3), PlainSum(clip=3.5), rounds=3).fit(train)
        assert sum(one.clipped for one in found.history_)


@pytest.mark.parametrize("model", [FedMF(k=3), FedALS(k=3), STEPS], ids=repr)
def test_mean_is_summed_once_and_first(split, model):
    watched = Watched()
    Trainer(model, watched, rounds=3).fit(split.train)
    kinds = [session.split()[1] for *_, session in watched.calls]
    assert kinds == [b"mean", b"count", b"sum", b"sum", b"sum"]
    kind, sent, *_ = watched.calls[0]
    assert kind == "sum"
    for user, vector in sent.items():
        values = split.train.of_user(user)[1]
        sums = 4096 * vector[:2] + 256 * vector[2:]
        np.testing.assert_allclose(sums, [(values - 3).sum(), values.size])


@pytest.mark.parametrize("model", [replace(STEPS, mean=3.5), ZERO], ids=repr)
def test_known_mean_is_not_summed(split, model):
    watched = Watched()
    Trainer(model, watched, rounds=1).fit(split.train)
    assert not any(b"mean" in session for *_, session in watched.calls)


def test_aborted_mean_is_summed_again(split):
    watched = Watched(RoundAborted("too few"))
    Trainer(FedMF(k=3), watched, rounds=2).fit(split.train)
    sessions = [session for *_, session in watched.calls]
    assert sessions[:2] == [b"fedmf mean 1", b"fedmf mean 2"]
    with pytest.raises(RoundAborted):
        Trainer(FedMF(k=3), Watched(*[RoundAborted("too few")] * 2), rounds=2).fit(split.train)


def test_mean_of_users_with_few_ratings_is_exact_at_ten_bits():
    """A number below `LARGEST` / 2^11 would be rounded to zero."""
    users, values = np.arange(90) // 3, np.tile([1.0, 5.0, 4.0, 2.0, 5.0], 18)
    ratings = from_triples(users, np.arange(90), values, scale=(1, 5))
    found = Loop(PlainSum(fractional_bits=10), Schedule(), 1).means(ratings)[0]
    assert found == pytest.approx(3.4, abs=1e-12)
    many = from_triples(np.zeros(500), np.arange(500), np.full(500, 1.0), scale=(1, 5))
    assert Means(many).vector(0).dense().tolist() == [
        -1008 / 4096,
        496 / 4096,
        8 / 256,
        4 / 256,
    ]


def test_mean_of_coarse_or_clipped_sums_is_within_the_scale(split):
    """Few fractional bits round the number of ratings more than their sum."""
    train, none = split.train, np.zeros(2, dtype=np.int64)
    for rest, meant in ((9.0, 5.0), (-9.0, 1.0), (0.5, 3.5)):
        for sums in ([rest, 1.0, 0.0, 0.0], [0.0, 0.0, rest, 1.0]):
            assert Means(train).mean(Aggregate(np.array(sums), none, (0,), 0)) == meant
    with pytest.raises(SettingError, match="clip"):
        Loop(PlainSum(clip=2.0**-9), Schedule(), 1).means(train)
    nobody = train.take(np.zeros(train.n_ratings, dtype=np.bool_))
    assert Loop(PlainSum(), Schedule(), 1).means(nobody) == (3.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class Own(Settings):
    """Model of items alone, without the members about a mean."""

    k: ClassVar[int] = 1
    width: ClassVar[int] = 1
    needs_counts: ClassVar[bool] = False
    solves_users: ClassVar[bool] = False
    bears_clipping: ClassVar[bool] = True
    remedy: ClassVar[str] = "use another"

    def initial(self, ratings, rng):
        return np.ones((ratings.n_users, 1)), np.full((ratings.n_items, 1), 3.0)

    def trained_items(self, raters, n_items):
        return np.ones(n_items, dtype=bool)

    def find_users(self, q, p, block):
        return p

    def local_steps(self, q, p, block, trained):
        slope = 0.1 * q[block.items] - (block.values[:, None] - q[block.items])
        return p, Rows(block.items, slope, len(q))

    def server_step(self, q, total, raters):
        return q - 0.01 * total


def test_own_model_without_a_mean_trains(split):
    watched = Watched()
    found = Trainer(Own(), watched, rounds=2).fit(scaled(split.train, (0.0, 100.0)))
    assert [session for *_, session in watched.calls] == [b"fedmf sum 1", b"fedmf sum 2"]
    assert found.history_.last.train_rmse < 50
