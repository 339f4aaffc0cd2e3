"""Ledger behind a client: spent before a masked vector leaves, whatever the server does."""

from __future__ import annotations

import asyncio
import os
import warnings
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from forked import in_fork
from oneshot_parties import LENIENT, Parties, parties
from secagg import (
    Bounds,
    BudgetSpent,
    Client,
    ClippingWarning,
    FixedPoint,
    Integers,
    JournalError,
    Noise,
    ParameterError,
    Phase,
    RoundParams,
    Server,
    Vault,
    _files,
)
from secagg.http import asgi, send_report
from secagg.http.connection import Connection
from secagg.http.problems import Problem
from secagg.http.server import listening
from secagg.oneshot import OneShotParams, report
from secagg.oneshot.client import write_report
from secagg.privacy import Budget, Loss, PrivacyLedger, plan
from secagg.testing import make_identity

pytest.importorskip("dp_accounting")
pytestmark = pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="no lock of folders")

BUDGET = Budget(2, 1e-6)
PLAN = plan(4, 30, norm=1, epsilon=2, delta=1e-6, rounds=4, min_survivors=3, colluders=1)
PARAMS = PLAN.params(session=b"sum", threshold=3)
VECTOR = np.ones(30) / 30


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "privacy.ledger", BUDGET)


def before_inputs(
    params: RoundParams, ledger: PrivacyLedger | None
) -> tuple[Server, dict[int, Client]]:
    """Return a round whose masked inputs are due; client 0 has the ledger."""
    server = Server(params)
    clients = {u: Client(u, params, spending=None if u else ledger) for u in range(4)}
    for step in (Client.advertise_keys, Client.share_keys):
        for u, client in clients.items():
            data = [] if step is Client.advertise_keys else [server.outbox[u]]
            server.receive(u, step(client, *data))
        server.close_round()
    return server, clients


def test_check30_each_masked_input_is_spent_once(ledger):
    for done in range(4):
        server, clients = before_inputs(replace(PARAMS, session=b"%d" % done), ledger)
        assert ledger.sums == done
        for u, client in clients.items():
            message = client.masked_input(server.outbox[u], VECTOR)
            server.receive(u, message)
            assert ledger.sums == done + 1
        server.close_round()
        for u, client in clients.items():
            server.receive(u, client.unmask(server.outbox[u]))
        server.close_round()
        assert np.abs(server.result().sum - 4 * VECTOR).max() < 10 * PLAN.error() * 4
        assert ledger.sums == done + 1
    assert ledger.spent == Loss.of(PARAMS) * 4
    # the server goes on, with the same parameters, with less noise, and with none
    noise = replace(PLAN.noise, sigma=PLAN.noise.sigma / 2)
    for lie in (PARAMS, replace(PARAMS, noise=noise), replace(PARAMS, noise=None)):
        client = Client(0, lie, spending=ledger)
        with pytest.raises(BudgetSpent):
            client.advertise_keys()
        assert client.phase is Phase.ADVERTISE_KEYS
    assert ledger.sums == 4


def test_check30_same_session_again_is_spent_again(ledger):
    """Another masked input has other noise, also in a round of the same bytes."""
    for _ in range(2):
        server, clients = before_inputs(PARAMS, ledger)
        clients[0].masked_input(server.outbox[0], VECTOR)
    assert ledger.sums == 2


def test_budget_that_others_spent_meanwhile(ledger):
    """Another session with the same data takes the last room between the keys and the input."""
    server, clients = before_inputs(PARAMS, ledger)
    for _ in range(4):
        ledger.spend(PARAMS)
    with pytest.raises(BudgetSpent):
        clients[0].masked_input(server.outbox[0], VECTOR)
    assert clients[0].phase is Phase.MASKED_INPUT
    assert ledger.sums == 4


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_check30_input_does_not_leave_before_the_loss_is_on_the_disk(ledger, monkeypatch, step):
    server, clients = before_inputs(PARAMS, ledger)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(_files.os, step, full)
        with pytest.raises(JournalError):
            clients[0].masked_input(server.outbox[0], VECTOR)
    assert clients[0].phase is Phase.MASKED_INPUT
    assert ledger.sums == 0
    assert clients[0].masked_input(server.outbox[0], VECTOR)
    assert ledger.sums == 1


def test_check30_client_that_dies_with_its_input_has_spent(ledger):
    def die() -> None:
        server, clients = before_inputs(PARAMS, ledger)
        clients[0].masked_input(server.outbox[0], VECTOR)

    in_fork(os.fork, die)
    assert ledger.sums == 1


def test_suspended_client_spends_in_the_process_of_the_input(ledger, tmp_path):
    server, clients = before_inputs(PARAMS, ledger)
    vault = Vault(tmp_path / "vault")
    state = clients[0].suspend(vault)
    restored = Client(0, PARAMS, spending=ledger)
    restored.restore(state, vault)
    assert ledger.sums == 0
    restored.masked_input(server.outbox[0], VECTOR)
    later = Client(0, PARAMS, spending=ledger)
    later.restore(restored.suspend(vault), vault)
    assert ledger.sums == 1


def test_input_that_fails_is_not_spent(ledger):
    noise = Noise(1 << 24, colluders=1)
    params = replace(PARAMS, encoding=FixedPoint(1.0), modulus_bits=40, noise=noise)
    server, clients = before_inputs(params, ledger)
    for vector in (VECTOR * np.nan, VECTOR[:3]):
        with pytest.raises(ParameterError):
            clients[0].masked_input(server.outbox[0], vector)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ClippingWarning):
            clients[0].masked_input(server.outbox[0], VECTOR * 100)
    assert ledger.sums == 0
    clients[0].masked_input(server.outbox[0], VECTOR)
    assert ledger.sums == 1


REPORTED = np.array([1, 2, 3, 4])
ONCE = Noise(600)
"""Noise with which `BUDGET` has room for one sum of the helpers' parties."""


@pytest.fixture
def made() -> Iterator[Parties]:
    with parties(noise=ONCE) as made:
        yield made


@dataclass
class Collector:
    """A collection that offers what it is told to, and notes what was spent at each report."""

    made: Parties
    ledger: PrivacyLedger
    lost: int = 0
    """Reports whose answer is lost."""
    seen: list[tuple[int, bytes]] = field(default_factory=list)

    def send(
        self, vector: Any = REPORTED, *, params: OneShotParams | None = None, **more: Any
    ) -> OneShotParams:
        """Return what `send_report` returns, under these parameters or those of the parties."""
        return asyncio.run(self._send(vector, params or self.made.params, more))

    async def _send(self, vector: Any, params: OneShotParams, more: Any) -> OneShotParams:
        self.made.restart(params)
        signed = [b64encode(helper.endorse()).decode() for helper in self.made.helpers]
        offer = {"parameters": b64encode(params.to_bytes()).decode(), "endorsements": signed}

        async def taken(request: Request) -> Response:
            self.seen.append((self.ledger.sums, await request.body()))
            if len(self.seen) <= self.lost:
                raise Problem(503, "database", "it is away")
            return Response(status_code=204)

        path = "/v1/parameters/{digest}/reports"
        routes = [asgi.document("/v1/parameters", offer), Route(path, taken, methods=["POST"])]
        helpers = frozenset(key for _, key in params.helpers)
        policy = replace(LENIENT, helpers=helpers, bounds=Bounds(Integers(100)))
        given = {"policy": policy, "identity": make_identity(1), "spending": self.ledger} | more
        async with listening(asgi.build(routes), "127.0.0.1", 0, None) as url:
            return await send_report(url, vector, 1, patience=30.0, **given)


@pytest.fixture
def collector(made, ledger):
    return Collector(made, ledger)


def reported(made: Parties, ledger: object, vector: Any = REPORTED) -> bytes:
    given = {"identity": make_identity(1), "policy": LENIENT, "spending": ledger}
    return report(vector, made.params, 1, **given)  # type: ignore[arg-type]


INVALID: dict[str, Any] = {"nan": REPORTED * np.nan, "long": np.arange(5), "good": REPORTED}


def test_check30_report_is_spent_once_before_it_is_sent(collector):
    collector.lost = 1
    assert collector.send().noise == ONCE
    (one, first), (two, second) = collector.seen
    assert (one, two) == (1, 1)
    assert first == second, "the same bytes, after an answer that was lost"
    assert collector.ledger.spent == Loss.of(collector.made.params)


@pytest.mark.parametrize("vector", INVALID)
@pytest.mark.parametrize(
    "lie",
    [{}, {"session": b"2"}, {"session": b"2", "noise": Noise(599)}, {"noise": None}],
    ids=["again", "another session", "less noise", "no noise"],
)
def test_check30_report_beyond_the_budget_is_not_sent(collector, lie, vector, monkeypatch):
    """Nor made: not even the time until the client leaves depends on the vector."""
    collector.send()
    monkeypatch.setattr("secagg.http.reporting.write_report", None)
    with pytest.raises(BudgetSpent):
        collector.send(INVALID[vector], params=replace(collector.made.params, **lie))
    assert len(collector.seen) == 1
    assert collector.ledger.sums == 1


@pytest.mark.parametrize("noise", [None, Noise(1), Noise(300)], ids=str)
def test_check30_report_without_enough_noise_is_not_sent(collector, noise):
    with pytest.raises(BudgetSpent):
        collector.send(params=replace(collector.made.params, noise=noise))
    assert (collector.seen, collector.ledger.sums) == ([], 0)


def test_check30_another_report_of_the_same_sum_is_spent_again(collector):
    """It has other bytes, and the ledger cannot know which of both is summed."""
    params = replace(collector.made.params, noise=Noise(1200))
    for done in (1, 2):
        collector.send(params=params)
        assert collector.ledger.sums == done
    (_, first), (_, second) = collector.seen
    assert first != second


@pytest.mark.parametrize("vector", ["nan", "long"])
def test_zeros_in_place_of_a_vector_are_spent_once(collector, vector):
    with pytest.raises(ParameterError) as caught:
        collector.send(INVALID[vector])
    assert not isinstance(caught.value, BudgetSpent)
    assert [spent for spent, _ in collector.seen] == [1]
    assert collector.ledger.sums == 1


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_check30_report_is_not_sent_before_the_loss_is_on_the_disk(
    collector, monkeypatch, step
):
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(_files.os, step, full)
        with pytest.raises(JournalError):
            collector.send()
    assert (collector.seen, collector.ledger.sums) == ([], 0)


def test_check30_client_that_dies_before_the_report_is_sent_has_spent(collector, monkeypatch):
    request = Connection.request

    async def die(self: Connection, method: str, *more: Any, **named: Any) -> Any:
        if method == "POST":
            os._exit(1)
        return await request(self, method, *more, **named)

    monkeypatch.setattr(Connection, "request", die)
    assert in_fork(os.fork, collector.send, same_id=False) == ""
    assert collector.ledger.sums == 1
    monkeypatch.undo()
    with pytest.raises(BudgetSpent):
        collector.send()
    assert collector.seen == []


def test_budget_that_others_spent_while_a_report_was_made(collector, monkeypatch):
    def meanwhile(*given: Any) -> Any:
        collector.ledger.spend(collector.made.params)
        return write_report(*given)

    monkeypatch.setattr("secagg.http.reporting.write_report", meanwhile)
    with pytest.raises(BudgetSpent):
        collector.send()
    assert (collector.seen, collector.ledger.sums) == ([], 1)


def test_check30_report_in_python_is_spent(made, ledger):
    assert reported(made, ledger)
    assert ledger.spent == Loss.of(made.params)
    with pytest.raises(BudgetSpent):
        reported(made, ledger)
    made.params = replace(made.params, noise=None)
    with pytest.raises(BudgetSpent):
        reported(made, ledger)
    assert ledger.sums == 1


def test_report_that_fails_is_not_spent(made, ledger):
    for vector in (INVALID["nan"], INVALID["long"]):
        with pytest.raises(ParameterError):
            reported(made, ledger, vector)
    made.params = replace(made.params, encoding=FixedPoint(1.0), noise=Noise(1 << 19))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ClippingWarning):
            reported(made, ledger, REPORTED * 1.5)
    assert ledger.sums == 0
    reported(made, ledger, REPORTED / 4)
    assert ledger.sums == 1


@pytest.mark.parametrize("wrong", [BUDGET, "privacy.ledger"], ids=str)
def test_account_of_the_wrong_kind_is_rejected(collector, wrong):
    doors: list[Callable[[], object]] = [
        lambda: collector.send(spending=wrong),
        lambda: reported(collector.made, wrong),
        lambda: Client(0, PARAMS, spending=wrong),
    ]
    for door in doors:
        with pytest.raises(ParameterError, match="spending"):
            door()
    assert collector.seen == []
