"""Excluded arrays. A strategy must not compute with them: floats lose integers and dtypes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

from flwr.app import ArrayRecord, Message, MetricRecord
from flwr.serverapp.strategy import Strategy


@contextmanager
def keeping(strategy: Strategy, exclude: Collection[str]) -> Iterator[None]:
    """Context manager in which a strategy's new models have the excluded arrays of the replies.

    A reply has the excluded arrays as the global model had them, bit for bit. Flower's averages
    multiply arrays by a weight. The product turns an int64 into a float64, and an infinite
    element into a NaN. An application can aggregate by a method of its own, as `fedmf` does.
    Arrays of the same dtype are then the method's result, and stay.
    """
    theirs = type(strategy).aggregate_train.__module__.startswith("flwr.")
    aggregate = strategy.aggregate_train

    def kept(
        server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        received = list(replies)  # read twice, and Flower can pass an iterator
        sent = [
            (name, array)
            for message in received
            if message.has_content()
            for record in message.content.array_records.values()
            for name, array in record.items()
            if name in exclude
        ]
        arrays, metrics = aggregate(server_round, received)
        if arrays is not None:
            for name, array in sent:
                if theirs or (name in arrays and arrays[name].dtype != array.dtype):
                    arrays[name] = array
        return arrays, metrics

    own = vars(strategy).get("aggregate_train")
    # the strategy's own start calls it, also where an application has overridden start
    vars(strategy)["aggregate_train"] = kept
    try:
        yield
    finally:
        if own is None:
            del vars(strategy)["aggregate_train"]
        else:
            vars(strategy)["aggregate_train"] = own
