"""Excluded arrays come out of a training as they went in: dtype, shape and every bit."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedAdam, FedAvg, FedAvgM

from flower_helpers import Door
from flower_nodes import configs, model, secure_app, wrapped
from secagg.flower.testing import LocalGrid

EXCLUDED = {
    "bool": np.array([True, False]),
    "int8": np.array([-128, 3, 127], np.int8),
    "uint64": np.array([0, 3, 2**64 - 1], np.uint64),
    "float16": np.array([0.1, 1 / 3], np.float16),
    "odd": np.array([2**60 + 1, 2**53 + 1]),
    "counter": np.array(2**62 + 1),
    "empty": np.zeros((0, 3), np.int16),
    "big-endian": np.array([1, 2], ">i4"),
}


def assert_unchanged(found: ArrayRecord, sent: ArrayRecord) -> None:
    assert list(found) == list(sent)
    for name in EXCLUDED:
        assert (found[name].dtype, found[name].shape) == (sent[name].dtype, sent[name].shape)
        assert found[name].numpy().tobytes() == sent[name].numpy().tobytes(), name


def trained(message: Message, context: Context) -> Message:
    """Reply with excluded arrays of other values and dtypes, which no sum has."""
    received = next(iter(message.content.array_records.values()))
    assert {received[name].dtype for name in ("odd", "counter")} == {"int64"}
    arrays = {
        name: Array(array.numpy() + 1.0 if name == "w" else array.numpy().astype(np.float32))
        for name, array in received.items()
    }
    metrics = MetricRecord({"num-examples": 1, "train-loss": 0.5})
    return Message(
        RecordDict({"arrays": ArrayRecord(arrays), "metrics": metrics}), reply_to=message
    )


@pytest.mark.parametrize("kind", [FedAvg, FedAvgM, FedAdam])
def test_excluded_arrays_keep_dtype_and_bits(kind: type[FedAvg], door: Door) -> None:
    start = model(**EXCLUDED, w=np.zeros(2, np.float32))
    evaluated: list[ArrayRecord] = []
    strategy = kind(fraction_evaluate=0.0)
    result = door.strategy(strategy, exclude=EXCLUDED).start(
        door.grid(trained),
        start,
        num_rounds=2,
        evaluate_fn=lambda _, arrays: evaluated.append(arrays),
    )
    assert len(evaluated) == 3
    for found in (*evaluated, result.arrays):
        assert_unchanged(found, start)
    assert (result.arrays["w"].numpy() != 0).all()
    assert "aggregate_train" not in vars(strategy)


def test_arrays_that_an_application_computes_stay() -> None:
    class Counting(FedAvg):
        def aggregate_train(
            self, server_round: int, replies: Iterable[Message]
        ) -> tuple[ArrayRecord | None, MetricRecord | None]:
            arrays, metrics = super().aggregate_train(server_round, replies)
            assert arrays is not None
            arrays["rounds"] = Array(np.array([float(server_round)]))
            return arrays, metrics

    start = model(odd=np.array([2**60 + 1]), rounds=np.zeros(1), w=np.zeros(2))
    strategy = wrapped(
        Counting(fraction_evaluate=0.0), averaging=True, exclude=["odd", "rounds"]
    )
    found = strategy.start(LocalGrid(secure_app(), configs()), start, num_rounds=2).arrays
    assert found["odd"].numpy().tolist() == [2**60 + 1]
    assert found["rounds"].numpy().tolist() == [2.0]


def test_strategy_is_its_own_again_after_an_error() -> None:
    class Failing(FedAvg):
        def aggregate_train(self, server_round: int, replies: object) -> object:
            raise KeyError("the application's own")

    strategy = Failing(fraction_evaluate=0.0)
    secure = wrapped(strategy, averaging=True, exclude=["odd"])
    with pytest.raises(KeyError):
        secure.start(
            LocalGrid(secure_app(), configs()), model(odd=np.array([1]), w=np.zeros(2))
        )
    assert strategy.aggregate_train.__func__ is Failing.aggregate_train
