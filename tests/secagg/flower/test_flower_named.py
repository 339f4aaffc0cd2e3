"""Errors and lines of the log that name the place of a mistake, and the argument to change."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict

import secagg
from flower_nodes import (
    NODES,
    assert_mean,
    configs,
    fedavg,
    logged_errors,
    model,
    run,
    secure_app,
    train,
    wrapped,
)
from secagg import ParameterError, TooFewSurvivors
from secagg.flower import OneShot, RemoteHelper
from secagg.flower.testing import LocalGrid, LocalHelper


@pytest.mark.parametrize(
    ("place", "found"),
    [
        (0, "url"),
        (1, None),
        (1, 3),
        (2, ("url", b"key")),
        (0, {}),
        (1, RemoteHelper),
        (2, LocalHelper),
        (0, [LocalHelper]),
        (2, b""),
        (1, object()),
    ],
    ids=range(10),
)
def test_a_wrong_helper_is_named_by_its_place_and_type(semi_honest, place, found):
    helpers = semi_honest.helpers
    helpers[place] = found
    name = found.__name__ if isinstance(found, type) else type(found).__name__
    with pytest.raises(ParameterError, match=rf"helpers\[{place}\].*{name}"):
        OneShot(fedavg(), helpers=helpers, clip=1.0, max_weight=1)


@pytest.mark.parametrize("helpers", [None, 3, RemoteHelper, object()])
def test_helpers_must_be_a_list(helpers):
    with pytest.raises(ParameterError, match="helpers must be a list"):
        OneShot(fedavg(), helpers=helpers, clip=1.0, max_weight=1)


@pytest.mark.parametrize("protocol", ["four", "one"])
def test_a_model_without_summed_arrays_names_the_argument(semi_honest, protocol):
    make, app = (
        (wrapped, secure_app())
        if protocol == "four"
        else (semi_honest.wrapped, semi_honest.app())
    )
    with pytest.raises(ParameterError, match="exclude"):
        run(LocalGrid(app, configs()), make(exclude=list(model())))
    with pytest.raises(ParameterError, match="no arrays"):
        make().start(LocalGrid(app, configs()), ArrayRecord(), num_rounds=1)


@pytest.mark.parametrize("protocol", ["four", "one"])
def test_too_few_nodes_name_the_arguments(semi_honest, protocol):
    four = protocol == "four"
    grid = LocalGrid(secure_app() if four else semi_honest.app(), configs())
    for node in NODES[:2]:
        grid.drop(node)
    with pytest.raises(TooFewSurvivors) as caught:
        run(grid, wrapped() if four else semi_honest.wrapped())
    text = str(caught.value)
    assert ("threshold=" if four else "min_clients=") in text
    assert 'on_failure="skip"' in text


ODD = {
    "int64": ("bias", lambda a: a.astype(np.int64), "int64"),
    "int8": ("bias", lambda a: a.astype(np.int8), "int8"),
    "uint32": ("weights", lambda a: a.astype(np.uint32), "uint32"),
    "bool": ("scale", lambda a: a.astype(bool), "bool"),
    "complex": ("bias", lambda a: a.astype(complex), "complex128"),
    "text": ("bias", lambda a: a.astype(str), "<U"),
    "nan": ("bias", lambda a: np.where(np.arange(5) == 3, np.nan, a), "element 3"),
    "inf": ("bias", lambda a: np.where(np.arange(5) == 0, np.inf, a), "element 0"),
    "-inf": ("bias", lambda a: np.where(np.arange(5) >= 2, -np.inf, a), "element 2"),
    "all": ("bias", lambda a: a * np.nan, "element 0"),
    "matrix": ("weights", lambda a: np.where(np.eye(3, 2) > 0, np.nan, a), "element 0"),
    "row": (
        "weights",
        lambda a: np.where(np.arange(6).reshape(3, 2) > 2, np.inf, a),
        "element 3",
    ),
    "scalar": ("scale", lambda a: np.asarray(a * np.inf), "element 0"),
}
"""Arrays of a reply that are no finite floats."""


@pytest.mark.parametrize("kind", ODD)
def test_an_array_that_cannot_be_summed_is_named_in_the_nodes_log(caplog, kind):
    name, change, word = ODD[kind]

    def reply(message: Message, context: Context) -> Message:
        found = train(message, context)
        if context.node_id == NODES[0]:
            record = found.content["arrays"]
            record[name] = Array(np.asarray(change(record[name].numpy())))
        return found

    with caplog.at_level(logging.ERROR, "flwr.secagg"):
        result = run(LocalGrid(secure_app(train=reply), configs()))
    assert_mean(result.arrays, NODES[1:])
    (cause,) = map(str, logged_errors(caplog.records))
    assert f"array {name!r}" in cause
    assert word in cause


def test_an_update_beyond_all_floats_is_no_sum(caplog):
    start = ArrayRecord({"w": Array(np.full(3, -1.7e308))})

    def reply(message: Message, context: Context) -> Message:
        trained = ArrayRecord({"w": Array(np.full(3, 1.7e308))})
        metrics = MetricRecord({"num-examples": 1})
        return Message(RecordDict({"arrays": trained, "metrics": metrics}), reply_to=message)

    grid = LocalGrid(secure_app(train=reply), configs())
    with caplog.at_level(logging.ERROR, "flwr.secagg"):
        assert not wrapped(on_failure="skip").start(grid, start, num_rounds=1).arrays
    (cause,) = {str(error) for error in logged_errors(caplog.records)}
    assert "global model" in cause


@pytest.mark.parametrize("failed", range(5))
def test_the_servers_log_has_the_total_weight(failed, caplog):
    def reply(message: Message, context: Context) -> Message:
        if context.node_id in NODES[:failed]:
            raise ValueError
        return train(message, context)

    with caplog.at_level(logging.INFO, "flwr.secagg"):
        run(LocalGrid(secure_app(train=reply), configs()))
    (line,) = [one for one in caplog.records if "summed" in one.getMessage()]
    assert line.args == (5, "num-examples", sum(range(failed + 1, 6)))


def test_errors_of_a_round_have_few_frames():
    grid = LocalGrid(secure_app(), configs(NODES[:2]))
    with pytest.raises(TooFewSurvivors) as caught:
        run(grid)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    package = Path(secagg.__file__).parent
    inside = [entry.path for entry in caught.traceback if package in entry.path.parents]
    assert not inside
