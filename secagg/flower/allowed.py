"""Strategies that need no more than the mean of the replies, and the remedies for others."""

from __future__ import annotations

from flwr.serverapp.strategy import (
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedProx,
    FedYogi,
    Strategy,
)

from secagg._check import check_flag
from secagg.errors import ParameterError

_AVERAGING = (FedAdagrad, FedAdam, FedAvg, FedAvgM, FedProx, FedYogi)
_ROBUST = "it compares the updates of single nodes; take FedAvg, whose updates clip= bounds"
_TREES = "trees have no mean; sum the histograms of their gradients, as the metrics of a FedAvg"
_IN_NODES = (
    "take FedAvg, let the mod fixedclipping_mod clip in the nodes, after SecAggMod, and pass "
    'start(train_config=ConfigRecord({"clipping_norm": ...}))'
)
_SERVER_CLIPS = f"it clips the updates of single nodes at the server; {_IN_NODES}"
_COUNTS = f"its noise is for a number of replies, and a secure sum is one reply; {_IN_NODES}"
_REMEDIES = {
    "Bulyan": _ROBUST,
    "DifferentialPrivacyClientSideAdaptiveClipping": (
        "each node would send in the clear whether its norm was below the bound; "
        "take FedAvg with a fixed clip"
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


def check_strategy(strategy: Strategy, *, averaging: bool, evaluates: bool = False) -> None:
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
    _check_class(type(strategy), averaging=averaging)
    if not averaging:
        _check_function(strategy, "train_metrics_aggr_fn")
        if evaluates:
            _check_function(strategy, "evaluate_metrics_aggr_fn")


def _check_class(kind: type[Strategy], *, averaging: bool) -> None:
    # Krum and others inherit from FedAvg; the order of the mro meets the rejected class first
    for above in kind.__mro__:
        if above in _AVERAGING and (averaging or above is kind):
            return
        if above.__module__.startswith("flwr.") and above.__name__ in _REMEDIES:
            raise ParameterError(
                f"{above.__name__} has no secure form: {_REMEDIES[above.__name__]}"
            )
    if not averaging:
        raise ParameterError(
            f"{kind.__name__} is not known to need the mean of the replies only; if it does, "
            "pass averaging=True"
        )


def _check_function(strategy: Strategy, name: str) -> None:
    """Raise `ParameterError` if a function of the application aggregates the metrics."""
    function = getattr(strategy, name, None)
    # Flower's own functions average by weight, so a single reply passes through unchanged
    if function is None or str(getattr(function, "__module__", "")).startswith("flwr."):
        return
    raise ParameterError(
        f"{name} would get one reply, the mean, in place of one of each node; leave it out, or "
        "pass averaging=True if it needs the mean only"
    )
