"""Reports of a node: once for a sum, on the message that all agreed on, and nothing else."""

from __future__ import annotations

import copy
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from flwr.app import (
    Array,
    Context,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.common.serde import message_from_proto, message_to_proto

from flower_helpers import Party, grid_of
from flower_nodes import (
    NODES,
    Meddler,
    assert_mean,
    configs,
    logged_errors,
    make_app,
    model,
    run,
    secure_app,
    train,
    weight,
    wrapped,
)
from frames import leaks
from secagg import Integers, ParameterError
from secagg.flower import OneShotMod
from secagg.flower.one_shot_sums import OneShotSums
from secagg.flower.testing import LocalGrid
from secagg.flower.wire import RECORD
from secagg.oneshot import OneShotParams, OneShotPolicy
from secagg.session.wire import read_name, write_name

Answer = Callable[[Message], Message]
OTHERS = [node for node in NODES if node != NODES[0]]
REFUSED = "secagg: RemoteProtocolError"
SECRET = 0.0731
"""Number that the nodes add to each array in a test of errors."""


def test_check50_a_node_reports_once_for_a_sum(party):
    trained = []

    def counted(message: Message, context: Context) -> Message:
        trained.append(context.node_id)
        return train(message, context)

    def meddle(message: Message, answer: Answer) -> Message:
        reply, again = answer(message), answer(copy.deepcopy(message))
        if reply.has_content():
            assert again.error.reason == REFUSED
        return reply

    grid = Meddler(party.app(counted), party.configs())
    grid.meddle = meddle
    assert_mean(run(grid, party.wrapped()).arrays, NODES)
    assert sorted(trained) == list(NODES)


def test_check50_a_restarted_node_reports_to_no_earlier_sum(party):
    first: list[Message] = []

    def meddle(message: Message, answer: Answer) -> Message:
        if message.metadata.dst_node_id == NODES[0]:
            first.append(copy.deepcopy(message))
        return answer(message)

    grid = grid_of(party, meddle)
    run(grid, party.wrapped(), rounds=2)
    again = LocalGrid(party.app(), {NODES[0]: grid.contexts[NODES[0]].node_config})
    for message in first:
        assert again.answer(message).error.reason == REFUSED


def test_check50_an_identity_reports_once_also_under_a_new_node_id(active):
    first: list[Message] = []

    def meddle(message: Message, answer: Answer) -> Message:
        if message.metadata.dst_node_id == NODES[0]:
            first.append(copy.deepcopy(message))
        return answer(message)

    grid = grid_of(active, meddle)
    run(grid, active.wrapped())
    moved = LocalGrid(active.app(), {99: grid.contexts[NODES[0]].node_config})
    first[0].metadata.__dict__["_dst_node_id"] = 99
    assert moved.answer(first[0]).error.reason == REFUSED


def test_a_node_without_an_identity_names_both_of_its_files(active, caplog):
    caplog.set_level(logging.ERROR, "flwr.secagg")
    nodes = active.configs()
    for key in ("secagg-identity", "secagg-registry"):
        del nodes[NODES[0]][key]
    assert_mean(run(LocalGrid(active.app(), nodes), active.wrapped()).arrays, OTHERS)
    assert "secagg-identity" in caplog.text
    assert "secagg-registry" in caplog.text


def test_check50_a_sum_of_another_run_gets_no_report(party):
    def meddle(message: Message, answer: Answer) -> Message:
        grid.contexts[message.metadata.dst_node_id].run_id = 2
        return answer(message)

    grid = grid_of(party, meddle)
    assert not run(grid, party.wrapped(on_failure="skip")).arrays
    assert {reply.error.reason for reply in grid.replies} == {REFUSED}


def test_check50_two_models_for_two_nodes_are_not_summed(party):
    def meddle(message: Message, answer: Answer) -> Message:
        if message.metadata.dst_node_id == NODES[0]:
            message = message_from_proto(message_to_proto(message))
            message.content["arrays"]["bias"] = Array(np.zeros(5))
        return answer(message)

    grid = grid_of(party, meddle)
    assert_mean(run(grid, party.wrapped()).arrays, OTHERS)
    assert [r.error.reason for r in grid.replies if r.has_error()] == [REFUSED]


@pytest.mark.parametrize("field", ["params", "plan", "data", "phase", "version"])
def test_check50_a_node_answers_no_altered_task(party, field):
    def meddle(message: Message, answer: Answer) -> Message:
        if message.metadata.dst_node_id == NODES[0]:
            message = message_from_proto(message_to_proto(message))
            record = message.content[RECORD]
            altered = {"phase": "masked_input", "version": 2}
            record[field] = altered[field] if field in altered else b"\0" + record[field]
        return answer(message)

    grid = grid_of(party, meddle)
    assert_mean(run(grid, party.wrapped()).arrays, OTHERS)
    assert sum(reply.has_error() for reply in grid.replies) == 1


def test_a_task_of_the_four_exchanges_is_refused(semi_honest):
    grid = grid_of(semi_honest)
    assert not run(grid, wrapped(on_failure="skip")).arrays
    assert {reply.error.reason for reply in grid.replies} == {REFUSED}


def test_a_node_of_the_four_exchanges_makes_no_report(semi_honest):
    grid = LocalGrid(secure_app(), configs())
    assert not run(grid, semi_honest.wrapped(on_failure="skip")).arrays
    assert {reply.error.reason for reply in grid.replies} == {REFUSED}


def renamed(**fields: object) -> Callable[[OneShotParams], OneShotParams]:
    """Change of a field of the name of the sum."""

    def change(params: OneShotParams) -> OneShotParams:
        name = read_name(params.session)._replace(**fields)
        return replace(params, session=write_name(b"flower", name))

    return change


@pytest.mark.parametrize(
    "change",
    [
        renamed(run=bytes(8)),
        renamed(attempt=1),
        lambda params: replace(params, session=b"short"),
        renamed(message=bytes(32)),
        lambda params: replace(params, length=params.length + 1),
        lambda params: replace(params, max_weight=None),
        lambda params: replace(params, encoding=Integers(9)),
    ],
    ids=["run", "attempt", "no name", "message", "length", "unweighted", "encoding"],
)
def test_check50_parameters_that_do_not_fit_are_rejected_before_training(
    party, monkeypatch, change
):
    trained: list[int] = []
    honest, wrapped = OneShotSums.params, party.wrapped(on_failure="skip")
    monkeypatch.setattr(OneShotSums, "params", lambda *given: change(honest(*given)))
    app = party.app(lambda *given: trained.append(1) or train(*given))
    grid = LocalGrid(app, party.configs())
    assert not run(grid, wrapped).arrays
    reasons = {reply.error.reason for reply in grid.replies}
    assert reasons == {"secagg: RemoteProtocolError"}
    assert not trained


def test_check50_reports_of_zeros_look_uniform(party):
    """An update of zeros is sent as the masks alone; a missing mask would show as zeros."""

    def still(message, context):
        measured = MetricRecord({"num-examples": weight(context.node_id)})
        content = RecordDict({"arrays": message.content["arrays"], "metrics": measured})
        return Message(content, reply_to=message)

    grid = LocalGrid(party.app(still), party.configs())
    party.wrapped().start(grid, model(w=np.zeros(2000)), num_rounds=1)
    sent = [reply.content[RECORD]["data"].data for reply in grid.replies]
    assert len(sent) == len(NODES)
    for report in sent:
        counts = Counter(report)
        assert len(counts) == 256
        assert max(counts.values()) < 3 * len(report) / 256


@pytest.mark.parametrize("kind", ["train", "train.own", "evaluate", "query"])
def test_check50_a_message_without_the_protocol_is_refused(party, kind):
    called: list[int] = []
    mod = OneShotMod(OneShotPolicy(helpers=party.trusted))
    app = make_app([mod], lambda *_: called.append(1), lambda *_: called.append(1))
    app.train("own")(lambda *_: called.append(1))
    grid = LocalGrid(app, configs())
    (reply,) = grid.send_and_receive([Message(RecordDict({"arrays": model()}), NODES[0], kind)])
    assert reply.error.code == 6
    assert not called


def test_check46_frames_of_a_failed_report_do_not_have_the_update(
    party: Party, caplog: pytest.LogCaptureFixture
) -> None:
    """A number that is none is found beside the vector."""

    def wrong(message: Message, context: Context) -> Message:
        before = message.content["arrays"].items()
        arrays = {name: np.asarray(array.numpy() + SECRET) for name, array in before}
        arrays["weights"][0, 0] = np.nan
        measured = MetricRecord({"num-examples": 1})
        content = RecordDict({"arrays": model(**arrays), "metrics": measured})
        return Message(content, reply_to=message)

    grid = LocalGrid(party.app(wrong), party.configs())
    with caplog.at_level(logging.ERROR, "flwr.secagg"):
        run(grid, party.wrapped(on_failure="skip"))
    failed = logged_errors(caplog.records)
    assert len(failed) == len(NODES)
    start = model()["bias"].numpy()
    secrets = [(start + SECRET).tobytes(), (start + SECRET - start).tobytes()]
    assert not [place for error in failed for place in leaks(error, secrets, __name__)]


def test_arguments_of_the_mod_are_validated():
    with pytest.raises(ParameterError):
        OneShotMod("policy")
    with pytest.raises(ParameterError):
        OneShotMod(public="loss")
