"""Wrapper of a strategy: the same rounds, over secure sums of either protocol."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from secagg import Bounded, FixedPoint, RoundResult
from secagg._check import check_integer, check_kind, is_real
from secagg._secrets import without_frames
from secagg.errors import ParameterError
from secagg.flower.grid import Averages, FixedNodes, Prepared, SecureGrid
from secagg.flower.suitable import check_strategy, checked_bounds

logger = logging.getLogger("flwr.secagg")


class SecureStrategy(Strategy):
    """Strategy whose rounds see the mean of the nodes' updates, and no single update.

    A class for each protocol inherits from this class. `SecAgg` documents the arguments with
    the same names, and `Averages` documents `phase` and `least`.
    """

    def __init__(
        self,
        strategy: Strategy,
        *,
        encoding: FixedPoint | Bounded,
        phase: str,
        least: int,
        max_weight: int | None,
        metrics: Mapping[str, float] | None,
        evaluate: Mapping[str, float] | None,
        exclude: Iterable[str],
        averaging: bool,
        on_failure: Literal["raise", "skip"],
    ) -> None:
        check_strategy(strategy, averaging=averaging, evaluates=bool(evaluate))
        if max_weight is not None:
            check_integer("max_weight", max_weight, 1, 1 << 53)
        if on_failure not in ("raise", "skip"):
            raise ParameterError(f"on_failure must be 'raise' or 'skip', not {on_failure!r}")
        if isinstance(exclude, str):
            raise ParameterError(f"exclude must be names of arrays, such as ({exclude!r},)")
        self._strategy, self._evaluate = strategy, evaluate
        self._aggregate = strategy.aggregate_train
        self._max_weight = None if max_weight is None else int(max_weight)
        weight = str(getattr(strategy, "weighted_by_key", "num-examples"))
        self._averages = Averages(
            encoding=encoding,
            phase=phase,
            least=least,
            weight=weight,
            weighted=max_weight is not None,
            exclude=tuple(exclude),
            train=checked_bounds("metrics", metrics, weight),
            evaluate=checked_bounds("evaluate", evaluate, weight),
            on_failure=on_failure,
        )

    @abstractmethod
    def _sum(
        self, grid: Grid, prepared: Prepared, timeout: float
    ) -> tuple[RoundResult, list[Message]]:
        """Return the sum of the nodes' replies to a batch; see `Summing`."""

    def _check_rounds(self, rounds: int) -> None:
        """Raise `ParameterError` if the settings do not allow so many rounds of training."""

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
        """Run the strategy's rounds with secure sums; see the strategy's `start`.

        Raises
        ------
        ParameterError
            An argument is of the wrong kind, or no node would get a message, or a `LocalGrid`
            has fewer nodes than the strategy waits for.
            The model has an array that is neither a float nor excluded, or not finite, or the
            parameters do not fit the model or the number of nodes. Or the strategy evaluates,
            and `evaluate` is not given: nodes would refuse that in each round.
        BudgetSpent
            The budget of a plan has no room for a sum, unless failures are to be skipped.
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
        # None is an hour, and a NaN is not above 0
        if timeout is not None and not (is_real(timeout) and timeout >= 0):
            raise ParameterError(f"timeout is {timeout!r}; it must be seconds, 0 or more")
        configs = {"train_config": train_config, "evaluate_config": evaluate_config}
        for name, config in configs.items():
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
        else:
            self._check_rounds(num_rounds)
        if fraction > 0 and self._evaluate is None:
            raise ParameterError(
                f"fraction_evaluate is {fraction!r}, and nodes refuse to be evaluated in the "
                f"clear; pass {type(self._strategy).__name__}(fraction_evaluate=0), the bounds "
                f'of metrics to sum, such as {type(self).__name__}(evaluate={{"accuracy": '
                "1.0}), or evaluate={} if the mods of all nodes have public=[...]"
            )
        if isinstance(grid, FixedNodes):
            nodes = len(list(grid.get_node_ids()))
            short = [
                f"{name}={least}"
                for name in ("min_available_nodes", "min_train_nodes", "min_evaluate_nodes")
                if (least := getattr(self._strategy, name, 0)) > nodes
            ]
            if short:
                raise ParameterError(
                    f"the grid has {nodes} nodes, and no more can join it, but the strategy "
                    f"has {' and '.join(short)}; give LocalGrid as many nodes, or lower what "
                    "the strategy waits for"
                )
        members = vars(self._strategy)
        own = members.get("aggregate_train")
        if own != self.aggregate_train:  # else a start within a start, by an application
            self._aggregate = self._strategy.aggregate_train
        # the strategy's own start calls it, also where an application has overridden start
        members["aggregate_train"] = self.aggregate_train
        try:
            return self._strategy.start(
                SecureGrid(grid, self._sum, self._averages),
                initial_arrays,
                num_rounds,
                timeout,
                train_config,
                evaluate_config,
                evaluate_fn,
            )
        finally:
            if own is None:
                del members["aggregate_train"]
            else:
                members["aggregate_train"] = own

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
        """Return what the wrapped strategy returns, with the excluded arrays of the replies.

        A reply has the excluded arrays as the global model had them, bit for bit. Flower's
        averages multiply arrays by a weight. The product turns an int64 into a float64, and an
        infinite element into a NaN. An application can aggregate by a method of its own, as
        `fedmf` does. Arrays of the same dtype are then the method's result, and stay.
        """
        theirs = type(self._strategy).aggregate_train.__module__.startswith("flwr.")
        received = list(replies)  # read twice, and Flower can pass an iterator
        sent = [
            (name, array)
            for message in received
            if message.has_content()
            for record in message.content.array_records.values()
            for name, array in record.items()
            if name in self._averages.exclude
        ]
        arrays, metrics = self._aggregate(server_round, received)
        if arrays is not None:
            for name, array in sent:
                if theirs or (name in arrays and arrays[name].dtype != array.dtype):
                    arrays[name] = array
        return arrays, metrics

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
