"""Names of clients: hashed to ids by the document's rule, and rejected if two have one id."""

from __future__ import annotations

import numpy as np
import pytest

import secagg
from harness import make_identity, make_params
from secagg import (
    Client,
    ParameterError,
    Registry,
    RemoteProtocolError,
    Server,
    client_id,
    simulate_round,
)
from secagg.protocol import client_ids

NAMES = ("alice", "Bob@example.org", "数据", "zoë", "7")


@pytest.fixture
def colliding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of one length have one id: a true collision takes 2^32 hashes."""
    monkeypatch.setattr(client_ids, "_hashed", lambda name: 1000 + len(name))


@pytest.mark.parametrize(
    "wrong", ["", "\ud800", "a\udfff", b"alice", 1.0, True, None, -1, 1 << 64]
)
def test_check21_client_that_is_no_name_and_no_id_raises(wrong: object) -> None:
    with pytest.raises(ParameterError) as caught:
        client_id(wrong)
    assert caught.value.__context__ is None
    for call in (
        lambda: Client(wrong, make_params()),
        lambda: Server(make_params()).receive(wrong, b""),
        lambda: Registry({wrong: make_identity(0).public}),
        lambda: simulate_round({wrong: np.zeros(4)}, make_params()),
    ):
        with pytest.raises(ParameterError):
            call()


def test_machines_accept_names_and_send_ids() -> None:
    params = make_params(5, security="active")
    registry = Registry({name: make_identity(i).public for i, name in enumerate(NAMES)})
    assert set(registry) == {client_id(name) for name in NAMES}
    assert registry["alice"] == registry[client_id("alice")] == make_identity(0).public
    assert "alice" in registry
    assert "carol" not in registry
    server = Server(params, registry=registry)
    clients = {
        name: Client(name, params, identity=make_identity(i), registry=registry)
        for i, name in enumerate(NAMES)
    }
    inbox = dict.fromkeys(NAMES, b"")
    while inbox:
        for name, data in inbox.items():
            answer = clients[name].answer(data, np.full(4, 1.0))
            server.receive(name, answer)
            server.receive(name, answer)  # sent again
        answers = server.close_round()
        inbox = {name: answers[client_id(name)] for name in NAMES if answers}
    result = server.result()
    assert result.survivors == tuple(sorted(client_id(name) for name in NAMES))
    assert result.sum.tolist() == [5.0] * 4


def test_simulation_accepts_names() -> None:
    params = make_params(5, max_weight=9)
    vectors: dict[int | str, np.ndarray] = dict.fromkeys([*NAMES[:4], 3], np.full(4, 1.0))
    weights: dict[int | str, int] = {**dict.fromkeys(NAMES[:4], 2), 3: 5}
    # the ids of a result name the same clients in the next round
    for alice in ("alice", client_id("alice")):
        gone = {alice: "share_keys"}
        result = simulate_round(vectors, params, weights=weights, dropouts=gone)
        assert result.survivors == tuple(sorted([3, *(client_id(n) for n in NAMES[1:4])]))
        assert result.weight == 11
        assert result.bytes_up.keys() == {3, *(client_id(name) for name in NAMES[:4])}


@pytest.mark.parametrize("pair", [("alice", "bobby"), ("alice", 1005), (1005, "alice")])
def test_check21_two_clients_of_one_id_are_rejected(colliding: None, pair) -> None:
    with pytest.raises(ParameterError):
        Registry({client: make_identity(i).public for i, client in enumerate(pair)})
    with pytest.raises(ParameterError):
        simulate_round(dict.fromkeys([7, 8, *pair], np.zeros(4)), make_params(5))
    vectors = dict.fromkeys(["alice", "b", "cc"], np.zeros(4))
    weights = {"bobby": 1, "b": 1, "cc": 1}  # the client "bobby" has the id of "alice"
    with pytest.raises(ParameterError):
        simulate_round(vectors, make_params(3, max_weight=3), weights=weights)


def test_check21_server_rejects_another_name_of_a_known_id(colliding: None) -> None:
    """The name that an accepted message had is the only one of its id."""
    params = make_params(3)
    names = ("alice", "b", "cc")
    clients = {name: Client(name, params) for name in names}
    server = Server(params)
    own = {name: clients[name].advertise_keys() for name in names}
    with pytest.raises(RemoteProtocolError):
        server.receive("bobby", b"no message")  # does not take the name
    for name in names:
        server.receive(name, own[name])
    for data in (own["alice"], Client("bobby", params).advertise_keys()):
        with pytest.raises(RemoteProtocolError) as caught:
            server.receive("bobby", data)
        assert (caught.value.check, caught.value.sender) == ("sender", 1005)
    rosters = server.close_round()
    shares = {name: clients[name].share_keys(rosters[client_id(name)]) for name in names}
    with pytest.raises(RemoteProtocolError) as caught:
        server.receive("bobby", shares["alice"])
    assert caught.value.check == "sender"
    server.receive(1005, shares["alice"])  # the id itself, as the server's answers have it
    assert server.waiting == {1001, 1002}


def test_resumed_server_learns_the_names_again(colliding: None, tmp_path) -> None:
    """A journal has ids only."""
    params = make_params(3)
    clients = {name: Client(name, params) for name in ("alice", "b", "cc")}
    with secagg.Journal.create(tmp_path / "round", params) as journal:
        server = Server(params, journal=journal)
        for name, client in clients.items():
            server.receive(name, client.advertise_keys())
        rosters = server.close_round()
        resumed = Server.resume(journal)
        assert resumed.outbox == rosters
        resumed.receive("alice", clients["alice"].share_keys(rosters[1005]))
        with pytest.raises(RemoteProtocolError) as caught:
            resumed.receive("bobby", b"")
        assert caught.value.check == "sender"
