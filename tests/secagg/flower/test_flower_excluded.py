"""Excluded arrays come out of a training as they went in: dtype, shape and every bit."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import (
    FedAdagrad,
    FedAdam,
    FedAvg,
    FedAvgM,
    FedProx,
    FedYogi,
    Strategy,
)

from flower_helpers import Party
from flower_nodes import configs, fedavg, model, secure_app, wrapped
from secagg.flower.testing import LocalGrid
from secagg.oneshot import HelperJournal

EXCLUDED = {
    "bool": np.array([True, False]),
    **{
        dtype: np.array([np.iinfo(dtype).min, 3, np.iinfo(dtype).max], dtype)
        for dtype in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
    "float16": np.array([0.1, 1 / 3], np.float16),
    "float32": np.array([0.1, 1 / 3], np.float32),
    "float64": np.array([0.1, 5e-324, -0.0]),
    "odd": np.array([2**60 + 1, 2**53 + 1]),
    "counter": np.array(2**62 + 1),
    "empty": np.zeros((0, 3), np.int16),
    "square": np.arange(6, dtype=np.uint8).reshape(2, 3),
    "big-endian": np.array([1, 2], ">i4"),
}
MASK = np.array([[0.0, -np.inf], [0.0, 0.0]], np.float32)  # of attention
STRATEGIES = {
    "FedAvg": lambda: FedAvg(fraction_evaluate=0.0),
    "FedProx": lambda: FedProx(fraction_evaluate=0.0, proximal_mu=0.1),
    "FedAvgM": lambda: FedAvgM(fraction_evaluate=0.0, server_momentum=0.9),
    "FedAdam": lambda: FedAdam(fraction_evaluate=0.0),
    "FedYogi": lambda: FedYogi(fraction_evaluate=0.0),
    "FedAdagrad": lambda: FedAdagrad(fraction_evaluate=0.0),
}


def assert_unchanged(found: ArrayRecord, sent: ArrayRecord) -> None:
    assert list(found) == list(sent)
    for name in EXCLUDED:
        assert (found[name].dtype, found[name].shape) == (sent[name].dtype, sent[name].shape)
        assert found[name].numpy().tobytes() == sent[name].numpy().tobytes(), name


def trained(message: Message, context: Context) -> Message:
    """Reply with excluded arrays of other values and dtypes, which no sum has."""
    received = next(iter(message.content.array_records.values()))
    assert {received[name].dtype for name in ("int64", "odd", "counter")} == {"int64"}
    arrays = {
        name: Array(array.numpy() + 1.0 if name == "w" else array.numpy().astype(np.float32))
        for name, array in received.items()
    }
    metrics = MetricRecord({"num-examples": 1, "train-loss": 0.5})
    return Message(
        RecordDict({"arrays": ArrayRecord(arrays), "metrics": metrics}), reply_to=message
    )


@pytest.mark.parametrize("name", STRATEGIES)
def test_excluded_arrays_keep_dtype_and_bits(name: str) -> None:
    start = model(**EXCLUDED, w=np.zeros(2, np.float32))
    evaluated: list[ArrayRecord] = []
    strategy: Strategy = STRATEGIES[name]()
    result = wrapped(strategy, exclude=EXCLUDED).start(
        LocalGrid(secure_app(train=trained), configs()),
        start,
        num_rounds=2,
        evaluate_fn=lambda _, arrays: evaluated.append(arrays),
    )
    assert len(evaluated) == 3
    for found in (*evaluated, result.arrays):
        assert_unchanged(found, start)
    assert (result.arrays["w"].numpy() != 0).all()
    assert "aggregate_train" not in vars(strategy)


def test_excluded_arrays_of_one_shot_sums_keep_dtype_and_bits(
    journals: list[HelperJournal],
) -> None:
    party = Party(journals[:2])
    start = model(**EXCLUDED, w=np.zeros(2, np.float32))
    secure = party.wrapped(fedavg(), exclude=EXCLUDED)
    found = secure.start(LocalGrid(party.app(), configs()), start, num_rounds=1)
    assert_unchanged(found.arrays, start)


@pytest.mark.parametrize("make", [STRATEGIES["FedAvg"], STRATEGIES["FedProx"]])
def test_infinite_elements_of_an_excluded_mask_stay(make: Callable[[], Strategy]) -> None:
    start = model(mask=MASK, w=np.zeros(2, np.float32))
    grid = LocalGrid(secure_app(), configs())
    result = wrapped(make(), exclude=["mask"]).start(grid, start, num_rounds=2)
    assert result.arrays["mask"].numpy().tobytes() == MASK.tobytes()


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
