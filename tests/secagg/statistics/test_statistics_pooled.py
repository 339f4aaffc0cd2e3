"""Results over sites against numpy, pandas, scipy, statsmodels and lifelines on pooled data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from numpy.testing import assert_allclose
from sklearn import datasets

from secagg.statistics import (
    Category,
    Counts,
    Covariance,
    Histogram,
    Linear,
    Logistic,
    Moments,
    Number,
    Plan,
    Poisson,
    Quantiles,
    Result,
    SitePolicy,
    Survival,
    simulate,
)

sm = pytest.importorskip("statsmodels.api")
survfunc = pytest.importorskip("statsmodels.duration.survfunc")

ANY = SitePolicy(min_count=1, min_sites=1, records_per_parameter=1)
Split = Callable[[pd.DataFrame], list[pd.DataFrame]]
SPLITS: dict[str, Split] = {
    "in turn": lambda t: [t.iloc[i::5] for i in range(5)],
    "sorted blocks": lambda t: [
        t.sort_values(t.columns[0]).iloc[a:b] for a, b in ((0, 90), (90, 140), (140, len(t)))
    ],
    "sizes 1, 2, rest": lambda t: [t.iloc[:1], t.iloc[1:3], t.iloc[3:60], t.iloc[60:]],
}


@pytest.fixture(params=SPLITS)
def split(request: pytest.FixtureRequest) -> Split:
    return SPLITS[request.param]


def run(tables: list[pd.DataFrame], columns: dict[str, Any], *statistics: Any) -> Result:
    plan = Plan("pooled", columns, statistics, min_sites=1)
    return simulate(plan, tables, way="plain", policy=ANY)


def frame(result: Result, name: str) -> pd.DataFrame:
    found = result.to_pandas(name)
    assert isinstance(found, pd.DataFrame)
    return found


def diabetes() -> tuple[pd.DataFrame, dict[str, Any]]:
    table = datasets.load_diabetes(as_frame=True, scaled=False).frame
    table["sex"] = table["sex"].astype(int)
    columns = {
        "age": Number(0, 100),
        "sex": Category([1, 2]),
        "bmi": Number(10, 60, ".1"),
        "bp": Number(0, 200, ".01"),
        "s1": Number(0, 500, ".1"),
        "target": Number(0, 400),
    }
    return table[list(columns)], columns


def test_moments_are_those_of_pandas_and_scipy(split: Split) -> None:
    table, columns = diabetes()
    wanted = [Moments("bp"), Moments("bmi", by="sex")]
    used = {name: columns[name] for name in ("bp", "bmi", "sex")}
    result = run(split(table), used, *wanted)
    groups = [(frame(result, "moments of bp").iloc[0], table["bp"])]
    of_bmi = frame(result, "moments of bmi by sex").set_index("sex")
    groups += [(of_bmi.loc[str(sex)], part) for sex, part in table.groupby("sex")["bmi"]]
    for row, values in groups:
        assert row["records"] == len(values)
        assert_allclose(row["mean"], np.mean(values), rtol=1e-9)
        assert_allclose(row["sd"] ** 2, np.var(values, ddof=1), rtol=1e-9)
        assert_allclose(row["se"], scipy.stats.sem(values), rtol=1e-9)
        assert_allclose(row["skewness"], scipy.stats.skew(values), rtol=1e-9)


def test_counts_and_histograms_are_those_of_pandas(split: Split) -> None:
    table = datasets.load_wine(as_frame=True).frame
    table["strong"] = np.where(table["alcohol"] > 13, "yes", "no")
    columns = {
        "target": Category(range(3)),
        "strong": Category(["no", "yes"]),
        "alcohol": Number(10, 16, ".01"),
    }
    edges = [12, "12.5", 13, "13.5"]
    plan = Plan(
        "wine",
        columns,
        [Counts(("target", "strong")), Histogram("alcohol", edges, by="target")],
        min_count=1,
        min_sites=1,
    )
    result = simulate(plan, split(table), way="plain", policy=ANY)
    crossed = pd.crosstab(table["target"], table["strong"])
    for target, strong, count, _ in result["counts of target and strong"].rows:
        known = "(missing)" not in (target, strong)
        assert count == (crossed.loc[int(str(target)), str(strong)] if known else 0)
    cut = pd.cut(table["alcohol"], [10, *map(float, edges), 16], right=False)
    binned = pd.crosstab(table["target"], cut).to_numpy().ravel()
    rows = result["histogram of alcohol by target"].rows
    assert [row[2] for row in rows if "(missing)" not in row] == binned.tolist()


def test_quantiles_contain_those_of_numpy(split: Split) -> None:
    table, columns = diabetes()
    shares = (0.1, 0.25, 0.5, 0.9)
    used = {"bp": columns["bp"], "sex": columns["sex"]}
    result = run(split(table), used, Quantiles("bp", shares, by="sex"))
    rounded = (table["bp"] * 100).round() / 100
    for sex, share, records, _, low, high in result["quantiles of bp by sex"].rows:
        values = rounded[table["sex"] == int(str(sex))]
        assert records == len(values)
        exact = np.quantile(values, float(str(share)), method="inverted_cdf")
        assert float(str(low)) - 1e-9 <= exact <= float(str(high)) + 1e-9


def test_covariance_is_numpys(split: Split) -> None:
    table = datasets.load_iris(as_frame=True).data
    names = list(table.columns)
    columns = {name: Number(0, 10, ".1") for name in names}
    result = run(split(table), columns, Covariance(tuple(names)))
    name = f"covariance of {', '.join(names)}"
    assert_allclose(frame(result, name)[names], table.cov(), rtol=1e-9)
    assert_allclose(frame(result, f"{name}: correlation")[names], table.corr(), rtol=1e-9)
    components = frame(result, f"{name}: components")
    values, vectors = np.linalg.eigh(table.cov())
    assert_allclose(components["variance"], values[::-1], rtol=1e-9)
    assert_allclose(np.abs(components[names]), np.abs(vectors.T[::-1]), atol=1e-9)


def fitted(result: Result, name: str, model: Any, statistic: str, rtol: float) -> None:
    table = frame(result, name)
    assert_allclose(table["coefficient"], model.params, rtol=rtol)
    assert_allclose(table["se"], model.bse, rtol=rtol)
    assert_allclose(table[statistic], model.tvalues, rtol=rtol)
    assert_allclose(table["p"], model.pvalues, rtol=10 * rtol, atol=1e-300)


def test_least_squares_is_that_of_statsmodels(split: Split) -> None:
    table, columns = diabetes()
    x = ("age", "sex", "bmi", "bp", "s1")
    result = run(split(table), columns, Linear("target", x))
    design = sm.add_constant(table[list(x)].assign(sex=(table["sex"] == 2) * 1.0))
    model = sm.OLS(table["target"], design).fit()
    fitted(result, "linear regression of target", model, "t", 1e-9)
    summary = frame(result, "linear regression of target: summary").iloc[0]
    assert_allclose(summary["r2"], model.rsquared, rtol=1e-9)
    assert_allclose(summary["residual sd"] ** 2, model.mse_resid, rtol=1e-9)


def test_logistic_regression_is_that_of_statsmodels(split: Split) -> None:
    table = datasets.load_breast_cancer(as_frame=True).frame
    x = ("mean texture", "mean smoothness", "mean symmetry")
    table = table[[*x, "target"]]
    columns = {
        x[0]: Number(0, 1_000_000, ".01"),  # a range far above the values
        x[1]: Number(0, 1, ".000001"),
        x[2]: Number(0, 1, ".0001"),
        "target": Category([0, 1]),
    }
    result = run(split(table), columns, Logistic("target", x))
    rounded = table.assign(**{x[1]: (table[x[1]] * 1e6).round() / 1e6})
    design = sm.add_constant(rounded[list(x)])
    model = sm.Logit(table["target"], design).fit(disp=0, tol=1e-14, maxiter=100)
    fitted(result, "logistic regression of target", model, "z", 1e-6)


def test_poisson_regression_is_that_of_statsmodels(split: Split) -> None:
    table = lifelines_data("rossi")[["prio", "age", "race", "fin"]]
    columns = {
        "prio": Number(0, 30),
        "age": Number(0, 60),
        "race": Category([0, 1]),
        "fin": Number(0, 1),
    }
    result = run(split(table), columns, Poisson("prio", ("age", "race", "fin")))
    design = sm.add_constant(table[["age", "race", "fin"]].astype(float))
    model = sm.GLM(table["prio"], design, family=sm.families.Poisson()).fit(tol=1e-14)
    fitted(result, "Poisson regression of prio", model, "z", 1e-6)


def lifelines_data(name: str) -> pd.DataFrame:
    """A survival set of lifelines, which the lock leaves out: it needs an older pandas."""
    datasets = pytest.importorskip("lifelines.datasets")
    return getattr(datasets, f"load_{name}")()


def test_survival_is_that_of_statsmodels(split: Split) -> None:
    draw = np.random.default_rng(5)
    table = pd.DataFrame({"t": draw.integers(1, 30, 400), "e": draw.integers(0, 2, 400)})
    table["g"] = draw.choice(["a", "b", "c"], 400)
    columns = {"t": Number(0, 30), "e": Category([0, 1]), "g": Category(["a", "b", "c"])}
    asked = [Survival("t", "e", range(1, 31), by="g")]
    plan = Plan("s", columns, asked, min_count=1, min_sites=1)
    result = simulate(plan, split(table), way="plain", policy=ANY)
    curve = frame(result, "survival of t by g: curve")
    for value, mine in table.groupby("g"):
        model = survfunc.SurvfuncRight(mine["t"], mine["e"])
        shown = curve[curve["g"] == value].set_index("time")
        found = pd.Series(model.surv_prob, model.surv_times)[shown.index]
        assert_allclose(shown["survival"], found, rtol=1e-9, atol=1e-12)
    row = frame(result, "survival of t by g: log-rank test").iloc[0]
    wanted = survfunc.survdiff(table["t"], table["e"], table["g"])
    assert_allclose([row["chi2"], row["p"]], wanted, rtol=1e-9)


@pytest.mark.parametrize("data", ["rossi", "waltons"])
@pytest.mark.filterwarnings("ignore:Starting with pandas:DeprecationWarning")
def test_survival_is_that_of_lifelines(split: Split, data: str) -> None:
    if data == "rossi":
        time, event, by, grid = "week", "arrest", "fin", range(1, 53)
        table = lifelines_data("rossi")[[time, event, by]]
    else:
        time, event, by, grid = "T", "E", "group", range(5, 80, 5)
        table = lifelines_data("waltons")
    lifelines = pytest.importorskip("lifelines")
    values = sorted(table[by].unique().tolist())
    columns = {time: Number(0, 100), event: Category([0, 1]), by: Category(values)}
    plan = Plan("s", columns, [Survival(time, event, grid, by=by)], min_count=1, min_sites=1)
    result = simulate(plan, split(table), way="plain", policy=ANY)
    name = f"survival of {time} by {by}"
    # the next time of the grid
    at = np.array(grid)[np.searchsorted(grid, table[time])]
    curve = frame(result, f"{name}: curve")
    for value in values:
        mine, here = curve[curve[by] == str(value)], table[by] == value
        model = lifelines.KaplanMeierFitter().fit(at[here], table[event][here])
        found = model.survival_function_at_times(mine["time"])
        assert_allclose(mine["survival"], found, rtol=1e-9, atol=1e-12)
        with np.errstate(divide="ignore", invalid="ignore"):  # at a survival of 0
            sums = np.sqrt(model._cumulative_sq_.loc[mine["time"]]).to_numpy()
        alive = found.to_numpy() > 0
        assert_allclose(mine["se"][alive], (found * sums)[alive], rtol=1e-9, atol=1e-12)
    test = lifelines.statistics.multivariate_logrank_test(at, table[by], table[event])
    row = frame(result, f"{name}: log-rank test").iloc[0]
    assert_allclose([row["chi2"], row["p"]], [test.test_statistic, test.p_value], rtol=1e-9)
