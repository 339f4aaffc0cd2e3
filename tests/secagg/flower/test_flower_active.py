"""The active variant over a grid: identities of nodes, and a server that lies."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from flwr.app import ConfigRecord, Message
from msgspec import structs

from flower_nodes import (
    NODES,
    Meddler,
    Reply,
    assert_mean,
    errors,
    identity,
    noting,
    phase_of,
    registry,
    run,
    secure_app,
    signed_configs,
    train,
    wrapped,
)
from frames import leaks
from secagg import (
    ClientPolicy,
    Identity,
    ParameterError,
    Registry,
    RoundParams,
    TooFewSurvivors,
    blame,
    client_id,
)
from secagg.flower import SecAgg
from secagg.flower.config import node_identity
from secagg.flower.testing import LocalGrid
from secagg.flower.wire import RECORD
from secagg.protocol.messages import (
    AdvertiseKeys,
    ConsistencyRequest,
    decode,
    encode,
    pack_ids,
    unpack_ids,
)
from spoilt_boxes import spoil_boxes

Answer = Callable[[Message], Message]
FIRST, *OTHERS = NODES
PHASES = ["advertise_keys", "share_keys", "masked_input", "consistency_check", "unmasking"]
REQUIRED = ClientPolicy(require_active=True)


def active(**settings: object) -> SecAgg:
    return wrapped(**{"security": "active", "registry": registry(), **settings})


def meddler(
    meddle: Callable[[Message, Answer], Message | None],
    changes: dict[int, dict[str, object]] | None = None,
    reply: Reply = train,
) -> Meddler:
    """Grid of nodes with identities, and with changes of some configurations; None deletes."""
    own = signed_configs()
    for node, change in (changes or {}).items():
        merged = {**own[node], **change}
        own[node] = {key: value for key, value in merged.items() if value is not None}
    grid = Meddler(secure_app(REQUIRED, reply), own)
    grid.meddle = meddle
    return grid


def honest(message: Message, answer: Answer) -> Message:
    return answer(message)


def test_mean_is_that_of_all_nodes():
    grid = meddler(honest)
    assert_mean(run(grid, active()).arrays, NODES)
    assert len(grid.replies) == 5 * len(NODES)


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
def test_verdict_on_a_node_is_logged_and_kept(suite, monkeypatch, caplog):
    """Each of two nodes complains of the first, and one may collude."""
    ids = [client_id(f"n{node}") for node in NODES]
    spoil_boxes(monkeypatch, ids[0], ids[1:3])
    strategy = active(on_failure="skip", suite=suite)
    with caplog.at_level(logging.WARNING, "flwr.secagg"):
        assert not run(meddler(honest), strategy).arrays
    (verdict,) = strategy.verdicts
    assert (verdict.client, verdict.kind) == (ids[0], "complaints")
    assert blame.check(verdict.data, registry()) == ids[0]
    (line,) = (one for one in caplog.messages if "secagg judge" in one)
    assert registry().called(ids[0]) in line
    # the next run is another one
    assert_mean(run(meddler(honest), strategy).arrays, NODES)
    assert strategy.verdicts == [verdict]


def test_check49_nodes_with_identities_are_in_no_semi_honest_sum():
    own = {n: {**c, "secagg-require-active": False} for n, c in signed_configs().items()}
    grid = LocalGrid(secure_app(), own)
    assert not run(grid, wrapped(on_failure="skip")).arrays
    assert errors(grid) == ["secagg: ParameterError"] * len(NODES)


@pytest.mark.parametrize("phase", PHASES)
def test_a_node_drops_out_at_an_exchange(phase: str) -> None:
    grid = meddler(honest)
    grid.meddle = lambda m, answer: (
        None if m.metadata.dst_node_id == FIRST and phase_of(m) == phase else answer(m)
    )
    with_input = phase in ("consistency_check", "unmasking")
    assert_mean(run(grid, active()).arrays, NODES if with_input else OTHERS)


NO_IDENTITY = {
    "identity": {"secagg-identity": None},
    "registry": {"secagg-registry": None},
    "both": {"secagg-identity": None, "secagg-registry": None},
    "number": {"secagg-identity": 7},
    "path": {"secagg-identity": "/nowhere/key.pem"},
    "no key": {"secagg-identity": "no key"},
    "no registry": {"secagg-registry": "no registry"},
    "of nobody": {"secagg-identity": "of nobody"},
}


@pytest.mark.parametrize("kind", NO_IDENTITY)
def test_check49_a_node_without_an_identity_does_not_train(kind: str, ram_path: Path) -> None:
    (ram_path / "no key").write_text("nothing")
    (ram_path / "no registry").write_text("[]")
    (ram_path / "of nobody").write_bytes(Identity.generate().to_pem())
    change = {
        key: str(ram_path / value) if value == kind else value
        for key, value in NO_IDENTITY[kind].items()
    }
    trained: list[int] = []
    grid = meddler(honest, {FIRST: change}, noting(trained))
    assert_mean(run(grid, active()).arrays, OTHERS)
    assert sorted(trained) == OTHERS
    assert errors(grid) == ["secagg: ParameterError"]


def test_check46_frames_of_an_unregistered_identity_do_not_have_the_key():
    config = signed_configs()[FIRST]
    key = Path(config["secagg-identity"])
    other = bytes(range(32))
    key.write_bytes(Identity(other).to_pem())
    with pytest.raises(ParameterError) as caught:
        node_identity(config)
    assert not leaks(caught.value, [other, key.read_bytes()], __name__)


def test_check49_a_node_with_a_foreign_registry_does_not_train(ram_path: Path) -> None:
    """Its registry has another key for one of the others, as if the server had chosen it."""
    foreign = {f"n{node}": identity(node).public.hex() for node in NODES}
    foreign[f"n{NODES[1]}"] = Identity.generate().public.hex()
    path = ram_path / "registry.json"
    path.write_text(json.dumps(foreign))
    grid = meddler(honest, {FIRST: {"secagg-registry": str(path)}})
    assert_mean(run(grid, active()).arrays, OTHERS)
    assert errors(grid) == ["secagg: RemoteProtocolError"]


def test_nodes_of_a_registry_that_the_server_does_not_have_drop_out():
    foreign = Registry({f"n{node}": Identity.generate().public for node in NODES})
    with pytest.raises(TooFewSurvivors):
        run(meddler(honest), active(registry=foreign))
    fewer = {f"n{node}": identity(node).public for node in OTHERS}
    assert_mean(run(meddler(honest), active(registry=Registry(fewer))).arrays, OTHERS)


def test_of_two_nodes_with_one_identity_one_takes_part(ram_path: Path) -> None:
    key = ram_path / "key.pem"
    key.write_bytes(identity(FIRST).to_pem())
    twin = {"secagg-identity": str(key), "secagg-state-dir": str(ram_path)}
    trained: list[int] = []
    grid = meddler(honest, {NODES[-1]: twin}, noting(trained))
    arrays = run(grid, active()).arrays
    assert len(trained) == 4
    assert set(NODES[1:-1]) < set(trained)
    assert_mean(arrays, trained)


def test_a_node_with_the_message_of_another_does_not_take_its_place():
    """A copied advertisement is well signed, and its sender cannot go on with it."""
    kept: list[Message] = []

    def meddle(message: Message, answer: Answer) -> Message:
        reply = answer(message)
        if phase_of(message) == "advertise_keys":
            kept.append(reply)
            if len(kept) == 2:
                reply.content = kept[0].content
        return reply

    arrays = run(meddler(meddle), active()).arrays
    copier = kept[1].metadata.src_node_id
    assert_mean(arrays, [node for node in NODES if node != copier])


def test_an_id_that_is_not_registered_drops_out():
    def meddle(message: Message, answer: Answer) -> Message:
        reply = answer(message)
        if phase_of(message) == "advertise_keys" and message.metadata.dst_node_id == FIRST:
            record, params = reply.content[RECORD], params_of(message)
            one = decode(record["data"], AdvertiseKeys, params, sender=None, phase="")
            record["data"] = encode(structs.replace(one, sender=5))
        return reply

    assert_mean(run(meddler(meddle), active()).arrays, OTHERS)


def params_of(message: Message) -> RoundParams:
    return RoundParams.from_bytes(message.content[RECORD]["params"])


def with_data(message: Message, data: bytes, **fields: object) -> Message:
    """The server's message with other data."""
    record = ConfigRecord({**message.content[RECORD], "data": data, **fields})
    message.content[RECORD] = record
    return message


def without(request: bytes, params: RoundParams, node: int) -> bytes:
    """A request to sign survivors, without one of them."""
    honest = decode(request, ConsistencyRequest, params, sender=None, phase="")
    ids = unpack_ids(honest.survivors)
    assert ids
    left = [one for one in ids if one != client_id(f"n{node}")]
    return encode(ConsistencyRequest(honest.session, pack_ids(left)))


def test_check49_a_server_with_two_sets_of_survivors_gets_no_share():
    """It asks two nodes to sign a set without one that it then wants to be opened."""
    shown = NODES[:2]

    def meddle(message: Message, answer: Answer) -> Message:
        if phase_of(message) == "consistency_check" and message.metadata.dst_node_id in shown:
            data = message.content[RECORD]["data"]
            message = with_data(message, without(data, params_of(message), NODES[4]))
        return answer(message)

    grid = meddler(meddle)
    with pytest.raises(TooFewSurvivors):
        run(grid, active())
    assert not errors(grid)
    assert {r.metadata.message_type for r in grid.replies} == {"train"}
    assert len(grid.replies) == 4 * len(NODES)


def test_check49_a_node_unmasks_only_the_set_that_it_signed():
    refused = []

    def meddle(message: Message, answer: Answer) -> Message:
        node = message.metadata.dst_node_id
        if phase_of(message) == "consistency_check" and node == FIRST:
            data = message.content[RECORD]["data"]
            return answer(with_data(message, without(data, params_of(message), NODES[4])))
        if phase_of(message) == "unmasking" and not refused:
            message.metadata.dst_node_id = FIRST
            refused.append(answer(message).error.reason)
            message.metadata.dst_node_id = node
        return answer(message)

    assert_mean(run(meddler(meddle), active()).arrays, NODES)
    assert refused == ["secagg: RemoteProtocolError"]


@pytest.mark.parametrize("phase", ["consistency_check", "unmasking"])
def test_check49_a_node_signs_one_set_of_survivors(phase: str) -> None:
    """The second request is another set, to sign or to unmask without any signature."""
    refused = []

    def meddle(message: Message, answer: Answer) -> Message:
        reply = answer(message)
        if phase_of(message) == "consistency_check" and message.metadata.dst_node_id == FIRST:
            other = without(message.content[RECORD]["data"], params_of(message), NODES[4])
            refused.append(answer(with_data(message, other, phase=phase)).error.reason)
        return reply

    assert_mean(run(meddler(meddle), active()).arrays, NODES)
    assert refused == ["secagg: RemoteProtocolError"]


@pytest.mark.parametrize(
    "settings",
    [
        {"registry": None},
        {"registry": {"n11": bytes(32)}},
        {"security": "semi-honest"},
        {"security": "none", "registry": None},
        {"threshold": 4, "neighbours": 4},
    ],
    ids=["registry", "mapping", "semi-honest", "none", "neighbours"],
)
def test_settings_that_do_not_fit_are_rejected(settings: dict[str, object]) -> None:
    with pytest.raises(ParameterError):
        active(**settings)
