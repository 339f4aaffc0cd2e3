"""Errors of rows are those of the test ratings, without influence on the training."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from benches.papers import beyond, bpmf, fcf2, fedmmf4, rounds, secure, thesis
from benches.papers.table import MODULES, Run, find_table
from fedmf.aggregate import PlainSum
from fedmf.data import Features
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.data.sets.simulated_views import simulate_views
from fedmf.data.splits import leave_last, random_split
from fedmf.fcf import CF, FCF, FederatedCF, user_split

pytestmark = pytest.mark.large

SEED = 1  # of the runs: not the one whose test ratings the selection parts off
FAR = 28.0  # beyond every error that the simulated ratings leave
WIDE = (3.5 - 0.625 * 80, 3.5 + 0.375 * 80)  # a scale around the neutral 3.5 with room for it
RATINGS = replace(simulate(10, 20, 130, seed=0), scale=WIDE)

ROWS = [
    pytest.param(key, row, id=f"{key}: {row.name}")
    for key, module in MODULES.items()
    for row in find_table(module, key).rows
    if "Surprise" not in row.name
    and "recorded" not in row.name
    and any("RMSE" in metric for metric in find_table(module, key).metrics)
    and key not in ("secure", "fcf-2")  # shows a difference; shows ranks of views
]


def judged_by(key, name):
    """Return the ratings that a row is to be judged by."""
    if key == "thesis-6.1":
        parted = (
            random_split(RATINGS, 0.25, SEED) if "75/25" in name else leave_last(RATINGS, 3)
        )
    elif key == "selection":
        parted = random_split(random_split(RATINGS, 0.2, seed=0).train, 0.1, SEED)
    elif share := re.search(r"trained on (\d+)%", name):
        parted = random_split(RATINGS, 1 - int(share[1]) / 100, SEED)
    elif "90/10" in name:
        parted = random_split(RATINGS, 0.1, SEED)
    elif "u1 to u5" in name:
        parted = fold_of(RATINGS, SEED + 1)
    else:
        parted = random_split(RATINGS, 0.2, SEED)
    return parted.test


def fold_of(ratings, fold):
    return random_split(ratings, 0.2, seed=100 + fold)


def raised(part, by):
    """Return all ratings, with those of the part raised."""
    users, items = RATINGS.users.astype(np.int64), RATINGS.items
    here = np.isin(users * 1000 + items, part.users.astype(np.int64) * 1000 + part.items)
    assert here.sum() == part.n_ratings
    return replace(RATINGS, values=RATINGS.values + by * here)


@pytest.mark.parametrize(("key", "row"), ROWS)
def test_errors_are_those_of_the_test_ratings(key, row, put, monkeypatch):
    """Raise the test ratings alone, and lower them: the square of the RMSE is a parabola.

    With residuals e it is mean (e + d)², so that the values at d, −d and 0 tell 2d² for any
    predictions that know nothing of d. Of ratings that taught it is constant, of all of them
    flatter, and where test ratings taught, e depends on d. The MAE is mean |e ± d|, which
    add up to 2d where d is larger than all e, and to 2 |e| where all e are larger. They are
    for a start at 0 on the scale 1 to 5, far below these ratings.
    """
    monkeypatch.setattr(beyond, "official", fold_of)
    monkeypatch.setattr(fedmmf4, "_features", features)
    monkeypatch.setattr(rounds, "COUNTED", (1, 2))  # a quick run does no more
    for module in (bpmf, secure, thesis):  # the same integers in less time
        monkeypatch.setattr(module, "SecAggSum", lambda **_: PlainSum())
    part = judged_by(key, row.name)
    found = []
    for by in (0.0, FAR, -FAR):
        put(raised(part, by))
        found.append(row.run(Run(seed=SEED, quick=True)))
    errors = {name for name in found[0] if "RMSE" in name or name in ("MAE", "no dropout")}
    for name in errors - {"ΔRMSE"}:
        still, up, down = (one[name] for one in found)
        if name == "MAE":
            assert up + down == pytest.approx(2 * max(FAR, still), rel=1e-9)
        else:
            assert up**2 + down**2 - 2 * still**2 == pytest.approx(2 * FAR**2, rel=1e-9), name
    assert errors


def features(ratings):
    return item_features(ratings), Features(np.eye(10)[:, :3], ("one", "two", "three"))


@pytest.mark.parametrize(
    "row", find_table(MODULES["fcf-2"], "fcf-2").rows, ids=lambda row: row.name
)
def test_recommendations_are_judged_by_test_views(row, monkeypatch):
    """The validation part is neither: it is hidden with what was learnt from."""
    whole = user_split(simulate_views(24, 32), 0.2, seed=0)
    parts = fcf2.Parts(user_split(whole.train, 0.25, seed=0).train, whole.train, whole.test)
    judged, learnt = [], []
    ranking = fcf2.ranking

    def watched(factors, test, hidden):
        judged.append((test, hidden))
        return ranking(factors, test, hidden)

    def watch(system, fit):
        def watched(self, ratings):
            learnt.append(ratings)
            return fit(self, ratings)

        monkeypatch.setattr(system, "fit", watched)

    for system in (CF, FCF, FederatedCF):
        watch(system, system.fit)
    monkeypatch.setattr(fcf2, "parts", lambda data, seed: parts)
    monkeypatch.setattr(fcf2, "ranking", watched)
    row.run(Run(seed=0, quick=True))
    assert judged
    assert all(one == (parts.test, parts.hidden) for one in judged)
    assert learnt
    assert all(one is parts.train for one in learnt)
