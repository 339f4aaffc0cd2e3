"""Suspended clients: the same round as without, each state once, and no state of another."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given

from effort import examples
from forked import in_fork
from frames import leaks
from harness import Cohort
from secagg import (
    Client,
    LocalProtocolError,
    ParameterError,
    Phase,
    RemoteProtocolError,
    TooFewSurvivors,
    VaultError,
    testing,
)
from secagg.client import stored
from slots import Slot
from suspended import CASES, KINDS, ME, again, refused, secrets_of, suspended


class Suspending(testing.Cohort):
    """A cohort whose clients are suspended after each message, and restored for the next."""

    def answer(self, u: int, data: bytes) -> bytes:
        message = super().answer(u, data)
        if self.clients[u].phase is not Phase.FINISHED:
            self.clients[u] = moved(self.clients[u], Slot())
        return message


def moved(client: Client, slot: Slot) -> Client:
    other, phase, clipped = again(client), client.phase, client.clipped
    other.restore(client.suspend(slot), slot)
    assert (client.phase, slot.key) == (Phase.SUSPENDED, None)
    assert (other.phase, other.clipped) == (phase, clipped)
    return other


def run(cohort: testing.Cohort, round: testing.Round) -> object:
    """All messages and the result of a round with its dropouts, or where it ended."""
    try:
        for phase in list(Phase):
            if cohort.server.phase is phase and phase is not Phase.FINISHED:
                missing = set(cohort.ids) - round.present(phase)
                cohort.deliver(cohort.step(without=missing))
    except TooFewSurvivors as error:
        return cohort.sent, error.phase
    result = cohort.server.result()
    expected = cohort.expected(result.survivors)
    assert result.integers.tolist() == expected
    return cohort.sent, expected, result.survivors, result.weight


@examples(40)
@given(testing.rounds())
def test_check48_suspended_clients_send_the_same_messages(round: testing.Round) -> None:
    """Any round: complete, graph, active, weights, dropouts in any phase."""
    assert run(Suspending(round), round) == run(testing.Cohort(round), round)


@pytest.mark.parametrize(("kind", "phases"), CASES)
def test_check48_suspended_object_is_dead_and_has_no_secret(kind: str, phases: int) -> None:
    cohort, _, slot = suspended(kind, phases)
    client = cohort.clients[ME]
    assert vars(client._state) == {"phase": Phase.SUSPENDED}
    for call in (
        lambda: client.answer(cohort.inbox[ME], cohort.vectors[ME]),
        lambda: client.suspend(slot),
        lambda: client.restore(b"", slot),
    ):
        with pytest.raises(LocalProtocolError):
            call()


@pytest.mark.parametrize(("kind", "phases"), CASES)
def test_check48_state_is_restored_once(kind: str, phases: int) -> None:
    cohort, state, slot = suspended(kind, phases)
    old = cohort.clients[ME]
    again(old).restore(state, slot)
    refused(again(old), state, slot, "used")


@pytest.mark.parametrize(("kind", "phases"), CASES)
@pytest.mark.parametrize("same_phase", [False, True])
def test_check48_older_state_is_not_restored(kind: str, phases: int, same_phase: bool) -> None:
    """It is older than the next phase's, or than another of the same phase."""
    cohort, older, slot = suspended(kind, phases)
    client = again(cohort.clients[ME])
    client.restore(older, slot)
    if not same_phase:
        client.answer(cohort.inbox[ME], cohort.vectors[ME], cohort.weights[ME])
    if client.phase is not Phase.FINISHED:
        latest = client.suspend(slot)
        refused(again(client), older, slot, "latest")
        again(client).restore(latest, slot)


@pytest.mark.parametrize("kind", KINDS)
def test_only_clients_between_two_messages_are_suspended(kind: str) -> None:
    slot, new, failed = Slot(), Cohort(KINDS[kind]), Cohort(KINDS[kind])
    finished = Cohort(KINDS[kind])
    failed.advance(1)
    with pytest.raises(RemoteProtocolError):
        failed.clients[ME].answer(b"")
    finished.advance(len(finished.phases()))
    for cohort in (new, failed, finished):
        with pytest.raises(LocalProtocolError):
            cohort.clients[ME].suspend(slot)
    assert slot.key is None


@pytest.mark.parametrize("kind", KINDS)
def test_state_is_restored_only_into_a_new_client(kind: str) -> None:
    cohort, state, slot = suspended(kind, 1)
    begun = again(cohort.clients[ME])
    begun.answer(b"")
    with pytest.raises(LocalProtocolError):
        begun.restore(state, slot)
    assert begun.phase is Phase.SHARE_KEYS
    again(begun).restore(state, slot)


@pytest.mark.parametrize("wrong", [5, "state", None])
def test_wrong_types_change_nothing(wrong: object) -> None:
    cohort, state, slot = suspended("complete", 1)
    client = again(cohort.clients[ME])
    with pytest.raises(ParameterError):
        client.restore(wrong, slot)  # type: ignore[arg-type]
    for call in (client.suspend, lambda vault: client.restore(state, vault)):
        for vault in (wrong, "vault"):
            with pytest.raises(ParameterError):
                call(vault)
    client.restore(bytearray(state), slot)  # type: ignore[arg-type]
    assert client.phase is Phase.SHARE_KEYS


class Broken(Slot):
    """A slot whose calls fail, as on a full disk."""

    def renew(self) -> bytes:
        raise VaultError("full", check="file")

    def take(self, _: bytes) -> None:
        raise VaultError("read-only", check="file")


def test_client_goes_on_if_it_cannot_be_suspended() -> None:
    cohort = Cohort(KINDS["complete"])
    cohort.advance(2)
    with pytest.raises(VaultError):
        cohort.clients[ME].suspend(Broken())
    while cohort.server.phase is not Phase.FINISHED:
        cohort.advance(1)


def test_check48_nothing_is_restored_while_the_key_cannot_be_removed() -> None:
    cohort, state, slot = suspended("complete", 2)
    client = again(cohort.clients[ME])
    refused(client, state, Broken(slot.key), "file")


@pytest.mark.parametrize("same_id", [False, True], ids=["child", "child in a container"])
def test_check48_restored_client_raises_in_a_fork(same_id: bool) -> None:
    cohort, state, slot = suspended("complete", 2)
    client = again(cohort.clients[ME])
    client.restore(state, slot)
    answer = partial(client.answer, cohort.inbox[ME], cohort.vectors[ME])
    for call in (partial(client.suspend, slot), answer):
        assert in_fork(os.fork, call, same_id) == "LocalProtocolError"
    assert answer()


@pytest.mark.parametrize("call", ["advertise_keys", "restore"])
def test_check48_a_fork_while_a_client_gets_its_secrets_raises(call: str) -> None:
    """A handler of signals can fork in the middle of a call, and the child go on with it."""
    cohort, state, slot = suspended("complete", 2)
    client = again(cohort.clients[ME])
    children: list[int] = []

    class Forking(Slot):
        def take(self, key: bytes) -> None:
            super().take(key)
            children.append(os.fork())

    def entropy(size: int) -> bytes:
        drawn = os.urandom(size)
        if not children:
            children.append(os.fork())
        return drawn

    reader, writer = os.pipe()
    if call == "restore":
        client.restore(state, Forking(slot.key))
    else:
        client._entropy = entropy
        client.advertise_keys()
    if children[0] == 0:
        try:
            client.suspend(Slot())
        except LocalProtocolError:
            os.write(writer, b"raised")
        finally:
            os._exit(0)
    os.waitpid(children[0], 0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert pipe.read() == "raised"
    assert client.suspend(Slot())


@pytest.mark.parametrize("call", ["suspend", "restore"])
def test_check48_two_threads_get_one_client(call: str) -> None:
    """The second thread comes while the first is at the key."""
    cohort, state, slot = suspended("complete", 2)
    client = again(cohort.clients[ME])
    outcomes: list[object] = []

    class Watched(Slot):
        def read(self) -> bytes:
            thread = threading.Thread(target=second)
            thread.start()
            thread.join(timeout=60)  # only so that waiting for each other fails
            return super().read()

        def renew(self) -> bytes:
            self.key = b""
            self.read()
            return super().renew()

    def second() -> None:
        try:
            outcomes.append(client.answer(cohort.inbox[ME], cohort.vectors[ME]))
        except LocalProtocolError as error:
            outcomes.append(type(error))

    if call == "suspend":
        client.restore(state, slot)
        client.suspend(Watched())
    else:
        client.restore(state, Watched(slot.key))
    assert set(outcomes) == {LocalProtocolError}


@pytest.mark.parametrize(("kind", "phases"), CASES)
def test_check29_state_and_key_have_no_secret_alone(kind: str, phases: int) -> None:
    cohort, slot = Cohort(KINDS[kind]), Slot()
    cohort.advance(phases)
    client = cohort.clients[ME]
    secrets = [*secrets_of(client)]
    content = stored.pack(client._state, ME, client.clipped)  # type: ignore[arg-type]
    state = client.suspend(slot)
    assert len(secrets) >= 2
    for secret in secrets:
        assert secret in content
        assert secret not in state
    vector = cohort.vectors[ME].tobytes()
    seed = testing.InsecureReplayedEntropy(("identity", ME))(32)
    for private in (vector, seed):
        assert private not in content


@pytest.mark.parametrize("call", ["suspend", "restore"])
def test_check46_errors_of_states_have_no_secret_in_frames(call: str) -> None:
    cohort, slot = Cohort(KINDS["complete"]), Slot()
    cohort.advance(2)
    client = cohort.clients[ME]
    secrets = [*secrets_of(client)]
    steps: Callable[[], object] = lambda: client.suspend(Broken())  # noqa: E731
    if call == "restore":
        state = client.suspend(slot)
        secrets.append(slot.key or b"")
        broken = Broken(slot.key)
        steps = lambda: again(client).restore(state, broken)  # noqa: E731
    with pytest.raises(VaultError) as caught:
        steps()
    assert leaks(caught.value, secrets, __name__) == []
