"""Declared settings: validation in one place, get_params, set_params and clone."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benches.papers.mixed_mode import MixedSum
from fedmf.aggregate import (
    PaillierSum,
    SecAggSum,
)
from fedmf.aggregate.noisy import NoisySum
from fedmf.context import ContextTrainer, FedFM
from fedmf.dp import DPFedMF
from fedmf.errors import MissingExtra, SettingError, optional
from fedmf.fcf import CF, FCF, Implicit
from fedmf.masks import FedMMF, FMMask
from fedmf.models import FedALS, FedMF
from fedmf.settings import (
    BelowOne,
    Count,
    Has,
    NotNegative,
    Positive,
    ProperFraction,
    Seed,
    Settings,
    UpToOne,
    check,
)
from fedmf.training import Descent, Schedule, Trainer
from paillier_keys import keypair
from threshold_keys import dealing

if TYPE_CHECKING:
    from decimal import Decimal


@dataclass(frozen=True, kw_only=True)
class Inner(Settings):
    """A part with settings."""

    k: Count = 2
    reg: NotNegative = 0.5
    kind: Literal["a", "b"] = "a"

    @cached_property
    def square(self) -> int:
        return self.k**2


class Outer(Settings):
    """A class with a constructor of its own."""

    def __init__(
        self,
        inner: Annotated[Inner, Has("get_params", "Inner()")] | None = None,
        *,
        rate: Positive = 1.0,
        limit: Count | None = None,
        flag: bool = False,
        parts: tuple[int, ...] = (),
    ) -> None:
        self.inner = Inner() if inner is None else inner
        self.rate, self.limit, self.flag, self.parts = rate, limit, flag, tuple(parts)
        self.__post_init__()

    def _check(self) -> None:
        if self.flag and self.limit is None:
            raise SettingError("flag = True wants a limit")


CHANGED = [  # every object with settings, with other values than the defaults
    SecAggSum(neighbours=4, threshold=3),
    PaillierSum(trust="key holder", key=keypair()),
    PaillierSum(trust="threshold", key=tuple(dealing(3, 2)[1])),
    NoisySum(inner=SecAggSum(clip=64.0), clip_norm=2.0, noise_multiplier=0.5, where="central"),
    MixedSum(SecAggSum(), ()),
    FedMF(k=3, biases=True, update="paper"),
    FedALS(reg=0.5),
    FedMMF(FMMask(k=3), Trainer(FedALS(), rounds=3), offset=False),
    Implicit(alpha=2.0),
    CF(Implicit(k=3), rounds=2, seed=5),
    Trainer(FedALS(), SecAggSum(), rounds=3, cohort=0.5, callbacks=[print]),
    ContextTrainer(FedFM(k=3), rounds=3, dropout=0.25),
    FCF(Implicit(k=3), optimiser=Descent(rate=0.5), steps=2),
    DPFedMF(SecAggSum(), rounds=2, epsilon=1.0, honest=0.5, dropout=0.25),
    Schedule(seed=3, cohort=0.5, dropout=0.25),
]


@pytest.mark.parametrize("made", CHANGED, ids=lambda made: type(made).__name__)
def test_estimators_are_cloned_by_sklearn(made):
    sklearn = pytest.importorskip("sklearn.base")
    copied = sklearn.clone(made)
    assert type(copied) is type(made)
    assert copied is not made
    if is_dataclass(made) and type(made).__eq__ is not object.__eq__:
        assert {one.name for one in fields(made)} >= set(made.get_params(deep=False))
        if not getattr(made, "key", None):  # keys are copied, and compare by identity
            assert copied == made
    assert sorted(copied.get_params()) == sorted(made.get_params())


@pytest.mark.parametrize("made", CHANGED, ids=lambda made: type(made).__name__)
def test_params_that_are_set_again_change_nothing(made):
    before = dict(vars(made))
    assert made.set_params(**made.get_params(deep=False)) is made
    assert vars(made) == before


def test_set_params_replaces_a_shared_part():
    shared = Inner()
    outer = Outer(shared).set_params(inner__k=9, rate=2.0)
    assert (outer.inner, outer.rate, shared) == (Inner(k=9), 2.0, Inner())


@pytest.mark.parametrize(
    ("params", "named"),
    [
        ({"rate": 2.0, "inner__k": True}, "k"),
        ({"rate": 2.0, "inner__kind": "c"}, "kind"),
        ({"rate": 2.0, "rat": 2.0}, "'rat' .* inner, rate, limit, flag, parts$"),
        ({"rate": 2.0, "inner__rat": 2.0}, "'rat' .* k, reg, kind$"),
        ({"rate": 2.0, "limit__k": 2}, "limit"),
        ({"rate": 2.0, "flag": True}, "flag"),
        ({"rate": 2.0, "flag": 1}, "flag"),
    ],
)
def test_one_bad_param_leaves_all_unchanged(params, named):
    outer = Outer()
    before = dict(vars(outer))
    with pytest.raises(SettingError, match=named):
        outer.set_params(**params)
    assert vars(outer) == before


def test_set_params_drops_caches_and_keeps_fitted():
    """Set params drops what was computed and keeps what was fitted."""
    inner = Inner(k=3)
    assert inner.square == 9
    assert inner.set_params(k=4).square == 16
    outer = Outer()
    outer.model_ = "learnt"
    assert outer.set_params(rate=2.0).model_ == "learnt"


class Passing(Trainer):
    """Constructor that passes unknown settings on."""

    def __init__(self, *args, extra: Count = 1, **settings):
        super().__init__(*args, **settings)
        self.extra = extra
        self.__post_init__()


class Thin(FedMF):
    """Constructor over the one of a dataclass."""

    def __init__(self, **settings):
        super().__init__(**settings)


class Fixed(FedMF):
    """A constructor that passes nothing on."""

    def __init__(self, k=3):
        super().__init__(k=k)


@dataclass(frozen=True, kw_only=True)
class Unresolved(FedMF):
    """A field whose annotation only type checkers can read."""

    exact: Decimal | None = None
    times: Count = 1


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: Passing(FedMF(), "nonsense"), "aggregation"),
        (lambda: Passing(rounds="x"), "rounds"),
        (lambda: Passing(extra=0), "extra"),
        (lambda: Thin(k=0), "k = 0"),
        (lambda: Fixed(k=0), "k = 0"),
        (lambda: Unresolved(k=0), "k = 0"),
        (lambda: Unresolved(times=0), "times = 0"),
        (lambda: Thin().set_params(k=0), "k = 0"),
    ],
)
def test_subclass_validates_declarations_of_its_bases(make, named):
    with pytest.raises(SettingError, match=named):
        make()


@pytest.mark.parametrize(
    ("made", "params"),
    [
        (Passing(rounds=3, extra=2), {"rounds": 4, "extra": 5}),
        (Thin(k=3), {"k": 4, "reg": 0.5}),
        (Fixed(), {"k": 4}),
        (Unresolved(exact="1"), {"k": 4, "exact": "2"}),
    ],
    ids=lambda one: type(one).__name__,
)
def test_subclass_is_cloned_and_its_params_are_set(made, params):
    copied = pytest.importorskip("sklearn.base").clone(made)
    assert type(copied) is type(made)
    assert repr(copied) == repr(made)
    assert copied.set_params(**params).get_params().items() >= params.items()
    assert made.get_params().items().isdisjoint(params.items())


INSIDE = {  # whether a number belongs to the range
    Count: lambda x: x >= 1,
    Seed: lambda x: x >= 0,
    Positive: lambda x: x > 0,
    NotNegative: lambda x: x >= 0,
    BelowOne: lambda x: 0 <= x < 1,
    UpToOne: lambda x: 0 < x <= 1,
    ProperFraction: lambda x: 0 < x < 1,
}
NUMBERS = st.sampled_from((0, 1, -1, 0.0, 1.0, math.inf, -math.inf, math.nan)) | st.one_of(
    st.integers(-3, 3), st.floats(-0.5, 1.5), st.integers(), st.floats()
)


@given(declared=st.sampled_from(list(INSIDE)), value=NUMBERS)
def test_range_accepts_its_finite_numbers_only(declared, value):
    right = math.isfinite(value) and INSIDE[declared](value)
    if declared in (Count, Seed):
        right = right and isinstance(value, int)
    if right:
        check(declared, value=value)
    else:
        with pytest.raises(SettingError, match="value = "):
            check(declared, value=value)


@given(declared=st.sampled_from(list(INSIDE)), value=st.booleans() | st.text() | st.none())
def test_range_rejects_other_types(declared, value):
    for one in (value, np.bool_(True), [1], Inner):
        with pytest.raises(SettingError, match="value = "):
            check(declared, value=one)


def test_missing_package_raises_with_its_name():
    with pytest.raises(MissingExtra, match="pip install no-package") as caught:
        optional("no_package.part", "is not there")
    assert caught.value.name == "no_package"


def test_numpys_scalars_become_pythons():
    made = Inner(k=np.int8(3), reg=np.float32(0.1))
    assert (made.k, type(made.k), made.reg, type(made.reg)) == (3, int, 0.1, float)
