"""Strategies of Flower and settings that have a secure form, and remedies for the others."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from flwr.serverapp.strategy import (
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedProx,
    FedYogi,
    Strategy,
)

from secagg._check import check_flag, check_kind, is_real
from secagg.errors import ParameterError
from secagg.flower.grid import CLIPPED
from secagg.flower.wire import is_computed
from secagg.privacy.noised import check_bounded

_AVERAGING = (FedAdagrad, FedAdam, FedAvg, FedAvgM, FedProx, FedYogi)
_ROBUST = "it compares the updates of single nodes; take FedAvg, whose updates clip= bounds"
_TREES = "trees have no mean; sum the histograms of their gradients, as the metrics of a FedAvg"
_IN_NODES = (
    "let the nodes clip and add the noise: SecAgg(FedAvg(), noise=secagg.privacy.plan(nodes, "
    "elements, norm=..., epsilon=..., delta=..., rounds=...))"
)
_SERVER_CLIPS = f"it clips the updates of single nodes at the server; {_IN_NODES}"
_COUNTS = f"its noise is for a number of replies, and a secure sum is one reply; {_IN_NODES}"
_REMEDIES = {
    "Bulyan": _ROBUST,
    "DifferentialPrivacyClientSideAdaptiveClipping": (
        "each node would send in the clear whether its norm was below the bound; take a fixed "
        f"norm, and {_IN_NODES}"
    ),
    "DifferentialPrivacyClientSideFixedClipping": _COUNTS,
    "DifferentialPrivacyServerSideAdaptiveClipping": _SERVER_CLIPS,
    "DifferentialPrivacyServerSideFixedClipping": _SERVER_CLIPS,
    "FedMedian": _ROBUST,
    "FedTrimmedAvg": _ROBUST,
    "FedXgbBagging": _TREES,
    "FedXgbCyclic": _TREES,
    "Krum": _ROBUST,
    "MultiKrum": _ROBUST,
    "QFedAvg": (
        "it weights each update by a loss of its node; compute that weight in the node, reply "
        "with it as the weight, and take FedAvg"
    ),
}
"""Remedies for Flower's other strategies, by name; older versions of Flower lack some."""


def check_strategy(strategy: Strategy, *, averaging: bool, evaluates: bool) -> None:
    """Raise `ParameterError` unless a strategy uses the mean of the replies only.

    Parameters
    ----------
    strategy : Strategy
    averaging : bool
        True: an application's own class or function is accepted, if no base class of the
        strategy is rejected.
    evaluates : bool
        True: metrics of evaluation are summed, too.
    """
    check_flag("averaging", averaging)
    if not isinstance(strategy, Strategy):
        raise ParameterError(
            f"strategy must be a strategy of flwr.serverapp.strategy, not {strategy!r}"
        )
    kind = type(strategy)
    # Krum and others inherit from FedAvg; the order of the mro meets the rejected class first
    for above in kind.__mro__:
        if above in _AVERAGING and (averaging or above is kind):
            break
        if above.__module__.startswith("flwr.") and above.__name__ in _REMEDIES:
            raise ParameterError(
                f"{above.__name__} has no secure form: {_REMEDIES[above.__name__]}"
            )
    else:
        if not averaging:
            raise ParameterError(
                f"{kind.__name__} is not known to need the mean of the replies only; if it "
                "does, pass averaging=True"
            )
    for name in ("train_metrics_aggr_fn", "evaluate_metrics_aggr_fn")[: 1 + evaluates]:
        function = getattr(strategy, name, None)
        # Flower's own functions average by weight, so a single reply passes through unchanged
        theirs = str(getattr(function, "__module__", "")).startswith("flwr.")
        if not averaging and function is not None and not theirs:
            raise ParameterError(
                f"{name} would get one reply, the mean, in place of one of each node; leave it "
                "out, or pass averaging=True if it needs the mean only"
            )


def check_unweighted(
    clip: float | None,
    max_weight: int | None,
    metrics: Mapping[str, float] | None,
    evaluate: Mapping[str, float] | None,
) -> None:
    """Raise `ParameterError` for arguments that sums of bounded norm or with noise lack."""
    check_bounded(clip, max_weight)
    # noise for the norm of an update has another scale than a metric
    for name, bounds in (("metrics", metrics), ("evaluate", evaluate)):
        if bounds:
            raise ParameterError(
                f"{name} is {bounds!r}, and noised sums have no metrics; leave it out, and "
                "declare public what may be in the clear: SecAggMod(public=[...]) with "
                "evaluate={}"
            )


def checked_bounds(
    name: str, bounds: Mapping[str, float] | None, weight: str
) -> dict[str, float]:
    """Return the bounds of metrics, or raise `ParameterError`."""
    given: Mapping[str, object] = {} if bounds is None else bounds
    check_kind(name, given, Mapping, 'bounds by the names of metrics, such as {"loss": 10.0}')
    for metric, bound in given.items():
        if metric in (weight, CLIPPED) or is_computed(metric):
            raise ParameterError(
                f"{name} has {metric!r}, which every sum has by itself; leave it out"
            )
        # nodes divide by it: not by a number of few bits
        if not is_real(bound) or not (sys.float_info.min <= float(bound) < float("inf")):
            raise ParameterError(
                f"{name} has the bound {bound!r} for {metric!r}; pass its largest size"
            )
    return {metric: float(bound) for metric, bound in (bounds or {}).items()}
