"""Ledger behind a client: spent before a masked input leaves, whatever the server does."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace

import numpy as np
import pytest

from forked import in_fork
from secagg import (
    BudgetSpent,
    Client,
    ClippingWarning,
    FixedPoint,
    JournalError,
    Noise,
    ParameterError,
    Phase,
    RoundParams,
    Server,
    Vault,
    _files,
)
from secagg.privacy import Budget, Loss, PrivacyLedger, plan

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
