"""Second model of ``fedmf train --out``, to rank items, as a model of ratings ranks badly.

The model is a small `FederatedCF` of the views in the same training part, with the same kind
of sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from time import perf_counter
from typing import Any, NamedTuple

from rich.console import Console

from fedmf.aggregate.aggregation import IntegerSum
from fedmf.data import Split
from fedmf.errors import FedMFError
from fedmf.fcf import FederatedCF, tuned, views
from fedmf.fcf.moments import VIEWS
from fedmf.models import Factors

FILE = "ranking.fedmf"
K, EPOCHS = 8, 5  # a sum has 45 numbers for each item


class Ranker(NamedTuple):
    """Trained factors that rank, or None; True if Ctrl-C ended the training; the seconds."""

    factors: Factors | None
    interrupted: bool
    seconds: float


def train_ranker(
    parts: Split,
    common: Mapping[str, Any],
    given: Mapping[str, Any],
    progress: Callable[[str, int, int], None],
    console: Console,
) -> Ranker:
    """Train the model that ranks; after a failure the model of ratings is kept all the same.

    Parameters
    ----------
    parts : split; only the training part is used
    common : aggregation, seed, cohort and dropout of the model of ratings; all users take part
    given : mapping of the given options; min_raters is taken
    progress : function of the name of the phase, the finished epochs and all epochs
    console : console for the reason why there is no model
    """
    summing: IntegerSum = copy(common["aggregation"]).set_params(**VIEWS)
    model = FederatedCF(
        tuned(K),
        summing,
        rounds=EPOCHS,
        seed=common["seed"],
        dropout=common["dropout"],
        **{name: given[name] for name in ("min_raters",) if name in given},
    )
    model.callbacks = [
        lambda record: progress("ranking model, sums", record.round, model.expected)
    ]
    start = perf_counter()
    try:
        model.fit(views(parts.train))
    except KeyboardInterrupt:
        return Ranker(None, True, perf_counter() - start)
    except FedMFError as error:
        console.print(f"no {FILE}: {error}", soft_wrap=True)
        return Ranker(None, False, perf_counter() - start)
    return Ranker(model.model_, model.history_.interrupted, perf_counter() - start)
