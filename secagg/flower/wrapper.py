"""Wrapper of a strategy: the same rounds, over secure sums of either protocol."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Literal

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from secagg._check import check_integer, check_kind, is_real
from secagg._secrets import without_frames
from secagg.errors import ParameterError
from secagg.flower.allowed import check_strategy
from secagg.flower.batches import Summing
from secagg.flower.excluded import keeping
from secagg.flower.fixed_nodes import FixedNodes, check_nodes
from secagg.flower.grid import CLIPPED, Averages, SecureGrid
from secagg.flower.wire import is_computed

logger = logging.getLogger("flwr.secagg")


class SecureStrategy(Strategy):
    """Strategy whose rounds see the mean of the nodes' updates, and no single update.

    A class for each protocol inherits from it and sets `_summing`. The arguments are those of
    `SecAgg` with the same names.
    """

    _summing: Summing

    def __init__(
        self,
        strategy: Strategy,
        *,
        max_weight: int,
        metrics: Mapping[str, float] | None,
        evaluate: Mapping[str, float] | None,
        exclude: Iterable[str],
        averaging: bool,
        on_failure: Literal["raise", "skip"],
    ) -> None:
        check_strategy(strategy, averaging=averaging, evaluates=bool(evaluate))
        check_integer("max_weight", max_weight, 1, 1 << 53)
        if on_failure not in ("raise", "skip"):
            raise ParameterError(f"on_failure must be 'raise' or 'skip', not {on_failure!r}")
        if isinstance(exclude, str):
            raise ParameterError(f"exclude must be names of arrays, such as ({exclude!r},)")
        self._strategy, self._evaluate = strategy, evaluate
        weight = str(getattr(strategy, "weighted_by_key", "num-examples"))
        self._averages = Averages(
            weight=weight,
            exclude=tuple(exclude),
            train=_bounds("metrics", metrics, weight),
            evaluate=_bounds("evaluate", evaluate, weight),
            on_failure=on_failure,
        )

    @without_frames
    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
    ) -> Result:
        """Run the strategy's rounds with secure sums; the arguments are those of its `start`.

        Raises
        ------
        ParameterError
            An argument is of the wrong kind, or no node would get a message, or a `LocalGrid`
            has fewer nodes than the strategy waits for.
            The model has an array that is neither a float nor excluded, or not finite, or the
            parameters do not fit the model or the number of nodes. Or the strategy evaluates,
            and `evaluate` is not given: nodes would refuse that in each round.
        TooFewSurvivors, RemoteProtocolError
            A sum failed, unless failures are to be skipped. Nothing has been unmasked, except
            where the weights add up to 0 or to an impossible sum.
        LinkError
            The SuperLink took no message, because they are too large, for example.
        """
        check_kind("grid", grid, Grid, "the Grid that the ServerApp's function gets")
        arrays = "an ArrayRecord of the global model, such as ArrayRecord([weights])"
        check_kind("initial_arrays", initial_arrays, ArrayRecord, arrays)
        check_integer("num_rounds", num_rounds, 0, 1 << 53)
        _check_timeout(timeout)
        for name, config in (
            ("train_config", train_config),
            ("evaluate_config", evaluate_config),
        ):
            wanted = 'a ConfigRecord, such as ConfigRecord({"lr": 0.1}), or None'
            check_kind(name, config, (ConfigRecord, type(None)), wanted)
        if evaluate_fn is not None and not callable(evaluate_fn):
            raise ParameterError(
                f"evaluate_fn must be a function of round and ArrayRecord, or None, not "
                f"{type(evaluate_fn).__name__}"
            )
        fraction = getattr(self._strategy, "fraction_evaluate", 0.0)
        if getattr(self._strategy, "fraction_train", 1.0) == 0:
            if fraction == 0:
                raise ParameterError(
                    "fraction_train and fraction_evaluate are 0, so no node would get a "
                    f"message; pass {type(self._strategy).__name__}(fraction_train=1.0)"
                )
            logger.warning(
                "secagg: fraction_train is 0: no node trains, and the result has no arrays"
            )
        if fraction > 0 and self._evaluate is None:
            raise ParameterError(
                f"fraction_evaluate is {fraction!r}, and nodes refuse to be evaluated in the "
                f"clear; pass {type(self._strategy).__name__}(fraction_evaluate=0), the bounds "
                f'of metrics to sum, such as {type(self).__name__}(evaluate={{"accuracy": '
                "1.0}), or evaluate={} if the mods of all nodes have public=[...]"
            )
        if isinstance(grid, FixedNodes):
            check_nodes(grid, self._strategy)
        with keeping(self._strategy, self._averages.exclude):
            return self._strategy.start(
                SecureGrid(grid, self._summing, self._averages),
                initial_arrays,
                num_rounds,
                timeout,
                train_config,
                evaluate_config,
                evaluate_fn,
            )

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Raise `ParameterError`: only another wrapper calls this, which would see no sum."""
        name = type(self).__name__
        raise ParameterError(
            f"{name} must be the outermost strategy: call start of {name}(...), and not of a "
            "strategy around it"
        )

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Return what the wrapped strategy returns."""
        return self._strategy.aggregate_train(server_round, replies)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return what the wrapped strategy returns."""
        return self._strategy.configure_evaluate(server_round, arrays, config, grid)

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Return what the wrapped strategy returns."""
        return self._strategy.aggregate_evaluate(server_round, replies)

    def summary(self) -> None:
        """Log the settings of the wrapped strategy."""
        self._strategy.summary()


def _check_timeout(timeout: object) -> None:
    """Raise `ParameterError` unless a timeout is seconds from 0, or None, an hour."""
    if timeout is None:
        return
    # a bool is a Real, too, and a NaN is not above 0
    if isinstance(timeout, bool) or not isinstance(timeout, Real) or not float(timeout) >= 0:
        raise ParameterError(f"timeout is {timeout!r}; it must be seconds, 0 or more")


def _bounds(name: str, bounds: Mapping[str, float] | None, weight: str) -> dict[str, float]:
    """Return the bounds of metrics, or raise `ParameterError`."""
    bounds = {} if bounds is None else bounds
    check_kind(name, bounds, Mapping, 'bounds by the names of metrics, such as {"loss": 10.0}')
    given: Mapping[str, object] = bounds
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
    return {metric: float(bound) for metric, bound in bounds.items()}
