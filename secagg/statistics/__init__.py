"""Secure statistics: counts, means, regressions and survival over tables that stay in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secagg._lazily import lazily

if TYPE_CHECKING:
    from secagg.statistics.columns import Category, Number
    from secagg.statistics.counts import Counts, Histogram
    from secagg.statistics.glm import Logistic, Poisson
    from secagg.statistics.ledger import Ledger
    from secagg.statistics.linear import Covariance, Linear
    from secagg.statistics.moments import Moments
    from secagg.statistics.noise import Privacy
    from secagg.statistics.plan import Plan
    from secagg.statistics.quantiles import Quantiles
    from secagg.statistics.result import Result
    from secagg.statistics.sessions import collect, one_shot, rounds
    from secagg.statistics.simulation import simulate
    from secagg.statistics.site import Site, SitePolicy
    from secagg.statistics.statistic import Table
    from secagg.statistics.study import Study
    from secagg.statistics.survival import Survival

__all__ = [
    "Category",
    "Counts",
    "Covariance",
    "Histogram",
    "Ledger",
    "Linear",
    "Logistic",
    "Moments",
    "Number",
    "Plan",
    "Poisson",
    "Privacy",
    "Quantiles",
    "Result",
    "Site",
    "SitePolicy",
    "Study",
    "Survival",
    "Table",
    "collect",
    "one_shot",
    "rounds",
    "simulate",
]

if not TYPE_CHECKING:  # every command imports the package, and most need no statistic
    _HOMES = {
        "columns": ("Category", "Number"),
        "counts": ("Counts", "Histogram"),
        "glm": ("Logistic", "Poisson"),
        "linear": ("Covariance", "Linear"),
        "noise": ("Privacy",),
        "sessions": ("collect", "one_shot", "rounds"),
        "simulation": ("simulate",),
        "site": ("Site", "SitePolicy"),
        "statistic": ("Table",),
    }
    # all other names are in a module of the same name
    _HOMES |= {n.lower(): (n,) for n in set(__all__).difference(*_HOMES.values())}
    __getattr__, __dir__ = lazily(__name__, _HOMES)
