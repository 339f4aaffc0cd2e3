"""Suspended clients: the same round as without, each state once, and no state of another."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from frames import leaks
from harness import TWO, Cohort, make_identity, make_params, registry_of
from secagg import (
    Client,
    CohortLedger,
    Identity,
    LocalProtocolError,
    ParameterError,
    Phase,
    RemoteProtocolError,
    RoundParams,
    TooFewSurvivors,
    VaultError,
    testing,
)
from secagg.client import stored
from slots import Slot

KINDS = {
    "complete": make_params(5, session=b"one"),
    "graph": make_params(7, neighbours=4, max_weight=3, modulus=(1 << 31) - 1),
    "active": make_params(5, security="active", count_clipped=True),
}
ME = 2
CASES = [
    (kind, phases)
    for kind, params in KINDS.items()
    for phases in range(1, 5 if params.active else 4)
]


class Suspending(Cohort):
    """A cohort whose clients are suspended after each message, and restored for the next."""

    def __init__(self, params: RoundParams, **options: object) -> None:
        super().__init__(params, **options)
        self.slots = {u: Slot() for u in self.ids}

    def answer(self, u: int, data: bytes) -> bytes:
        message = super().answer(u, data)
        if self.clients[u].phase is not Phase.FINISHED:
            self.clients[u] = moved(self.clients[u], self.slots[u])
        return message


def again(client: Client) -> Client:
    """A new client with the same arguments."""
    return Client(
        client.client_id,
        client.params,
        policy=client.policy,
        identity=client._identity,
        registry=client._registry,
        entropy=client._entropy,
    )


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


@examples(100)
@given(testing.rounds())
def test_check48_suspended_clients_send_the_same_messages(round: testing.Round) -> None:
    """Any round: complete, graph, active, weights, dropouts in any phase."""
    plain, other = testing.Cohort(round), testing.Cohort(round)
    slots = {u: Slot() for u in other.ids}

    def answer(u: int, data: bytes) -> bytes:
        message = testing.Cohort.answer(other, u, data)
        if other.clients[u].phase is not Phase.FINISHED:
            other.clients[u] = moved(other.clients[u], slots[u])
        return message

    other.answer = answer  # type: ignore[method-assign]
    assert run(other, round) == run(plain, round)


def suspended(kind: str, phases: int) -> tuple[Cohort, bytes, Slot]:
    """A cohort after some phases, and the state of its client with the slot of its key."""
    cohort, slot = Cohort(KINDS[kind]), Slot()
    cohort.advance(phases)
    return cohort, cohort.clients[ME].suspend(slot), slot


def refused(client: Client, state: bytes, slot: Slot, checks: str) -> None:
    """Assert that the state is rejected by that check, and that the client has ended."""
    with pytest.raises(VaultError) as caught:
        client.restore(state, slot)
    assert caught.value.check in checks.split("|")
    assert client.phase is Phase.FAILED
    with pytest.raises(LocalProtocolError):
        client.answer(b"")


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
def test_check48_older_state_is_not_restored(kind: str, phases: int) -> None:
    """It is older than the next phase's, and than another of the same phase."""
    cohort, older, slot = suspended(kind, phases)
    client = again(cohort.clients[ME])
    client.restore(older, slot)
    client.answer(cohort.inbox[ME], cohort.vectors[ME], cohort.weights[ME])
    if client.phase is not Phase.FINISHED:
        latest = client.suspend(slot)
        refused(again(client), older, slot, "latest")
        again(client).restore(latest, slot)
    cohort, older, slot = suspended(kind, phases)
    client = again(cohort.clients[ME])
    client.restore(older, slot)
    latest = client.suspend(slot)
    refused(again(client), older, slot, "latest")
    again(client).restore(latest, slot)


@pytest.mark.parametrize(("kind", "phases"), CASES)
def test_check48_state_of_another_client_or_round_is_rejected(kind: str, phases: int) -> None:
    cohort, state, slot = suspended(kind, phases)
    params, client = cohort.params, cohort.clients[ME]
    identity = make_identity(ME) if params.active else None

    def made(u: int, other: RoundParams, identity: Identity | None = identity) -> Client:
        return Client(
            u, other, policy=client.policy, identity=identity, registry=cohort.registry
        )

    theirs = make_identity(1) if params.active else None
    refused(made(1, params, theirs), state, slot, "client")
    refused(made(ME, replace(params, session=b"two")), state, slot, "session")
    refused(made(ME, replace(params, length=5)), state, slot, "parameters")
    made(ME, params).restore(state, slot)  # none of them has spoilt it


@pytest.mark.parametrize(("kind", "phases"), CASES)
def test_check48_head_is_authenticated(kind: str, phases: int) -> None:
    """The head names the client and the round that it is restored for, but not by suspend."""
    cohort, state, slot = suspended(kind, phases)
    params, client = cohort.params, cohort.clients[ME]
    sealed = stored.sealed_part(state, ME, params)
    others = [(1, params), (ME, replace(params, session=b"two"))]
    for u, other in others:
        identity = make_identity(u) if params.active else None
        registry = cohort.registry
        copy = Client(u, other, policy=client.policy, identity=identity, registry=registry)
        refused(copy, stored.head(u, other) + sealed, slot, "latest")


def test_check48_head_has_the_version_under_its_label(monkeypatch: pytest.MonkeyPatch) -> None:
    """No later version, and no other use of a key, opens a state of this one."""
    for name, value in (("VERSION", 2), ("_LABEL", b"secagg/2 other")):
        cohort, state, slot = suspended("complete", 1)
        sealed = stored.sealed_part(state, ME, cohort.params)
        with monkeypatch.context() as changed:
            changed.setattr(stored, name, value)
            other = stored.head(ME, cohort.params) + sealed
            refused(again(cohort.clients[ME]), other, slot, "latest")


@pytest.mark.parametrize(("kind", "phases"), CASES)
def test_check48_damaged_states_are_rejected(kind: str, phases: int) -> None:
    """Truncated at any length, longer, or with any byte changed: nothing is restored."""
    cohort, state, slot = suspended(kind, phases)
    client = cohort.clients[ME]
    for size in range(len(state)):
        refused(again(client), state[:size], slot, "length|latest")
    refused(again(client), state + b"\0", slot, "latest")
    for at in range(len(state)):
        flipped = state[:at] + bytes([state[at] ^ 1 << at % 8]) + state[at + 1 :]
        checks = "version|length|client|session|parameters|latest"
        refused(again(client), flipped, slot, checks)
    again(client).restore(state, slot)


def content_of(kind: str, phases: int) -> tuple[bytes, RoundParams]:
    cohort = Cohort(KINDS[kind])
    cohort.advance(phases)
    client = cohort.clients[ME]
    return stored.pack(client._state, client.clipped), cohort.params


@pytest.mark.parametrize(("kind", "phases"), CASES)
def test_content_is_read_strictly(kind: str, phases: int) -> None:
    """Content of another length, phase or ids is rejected, and the right one is canonical."""
    data, params = content_of(kind, phases)
    state, clipped = stored.unpack(data, ME, params)
    assert stored.pack(state, clipped) == data  # type: ignore[arg-type]
    others = [data[:size] for size in range(len(data))]
    others += [data + b"\0", data + bytes(72), b"\x04" + data[1:]]
    others += [bytes([due]) + data[1:] for due in range(4) if due != data[0]]
    for other in others:
        with pytest.raises(VaultError) as caught:
            stored.unpack(other, ME, params)
        assert caught.value.check == "content"
    if phases > 1:
        for me in (ME + 100, 1 << 63):
            with pytest.raises(VaultError):
                stored.unpack(data, me, params)
        with pytest.raises(VaultError):
            stored.unpack(data, ME, replace(params, n_clients=3, threshold=3, neighbours=None))


def test_content_with_foreign_or_unsorted_signers_is_not_read() -> None:
    data, params = content_of("active", 4)
    ids = struct.pack("<5Q", *range(5))
    assert data.endswith(ids)
    for signed in (struct.pack("<5Q", 0, 1, 2, 3, 9), struct.pack("<5Q", 1, 0, 2, 3, 4)):
        with pytest.raises(VaultError) as caught:
            stored.unpack(data.removesuffix(ids) + signed, ME, params)
        assert caught.value.check == "content"


@pytest.mark.parametrize("kind", KINDS)
def test_only_clients_between_two_messages_are_suspended(kind: str) -> None:
    cohort, slot = Cohort(KINDS[kind]), Slot()
    client = cohort.clients[ME]
    with pytest.raises(LocalProtocolError):
        client.suspend(slot)
    cohort.advance(len(cohort.phases()) - 1)
    failed = moved(client, slot)
    with pytest.raises(RemoteProtocolError):
        failed.answer(b"")
    cohort, slot = Cohort(KINDS[kind]), Slot()
    cohort.advance(len(cohort.phases()))
    assert cohort.clients[ME].phase is Phase.FINISHED
    for ended in (failed, cohort.clients[ME]):
        with pytest.raises(LocalProtocolError):
            ended.suspend(slot)
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


def test_check48_restored_client_raises_in_a_fork() -> None:
    cohort, state, slot = suspended("complete", 2)
    client = again(cohort.clients[ME])
    client.restore(state, slot)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        for call in (
            lambda: client.suspend(slot),
            lambda: client.answer(cohort.inbox[ME], cohort.vectors[ME]),
        ):
            try:
                call()
            except LocalProtocolError:
                os.write(writer, b"raised ")
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        assert pipe.read() == "raised raised "
    assert client.answer(cohort.inbox[ME], cohort.vectors[ME])


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


def test_check48_ledger_of_a_restored_client_rejects_a_close_cohort() -> None:
    ledger = CohortLedger(min_difference=3)
    ledger.record([0, 1, 2, 3])
    cohort, state, slot = suspended("complete", 3)
    old = cohort.clients[ME]
    client = Client(ME, cohort.params, policy=old.policy, ledger=ledger)
    client.restore(state, slot)
    with pytest.raises(RemoteProtocolError) as caught:
        client.answer(cohort.inbox[ME])
    assert caught.value.check == "ledger"


def test_restored_client_is_judged_by_its_own_policy() -> None:
    cohort, state, slot = suspended("complete", 1)
    with pytest.raises(ParameterError):
        Client(ME, cohort.params, policy=replace(TWO, min_clients=6))
    client = Client(ME, cohort.params, policy=replace(TWO, min_clients=5))
    client.restore(state, slot)
    small = Cohort(KINDS["complete"], ids=[0, 1, ME, 3])
    small.clients[ME] = client
    sent = small.step() if client.phase is Phase.ADVERTISE_KEYS else None
    assert sent is None
    assert client.phase is Phase.SHARE_KEYS


def secrets_of(client: Client) -> Iterator[bytes]:
    """Every secret byte string of 32 bytes or more in a client's state."""
    for value in vars(client._state).values():
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, bytes):
            yield value
        elif not isinstance(value, Phase) and value is not None:
            yield value.seed


@pytest.mark.parametrize(("kind", "phases"), CASES)
def test_check29_state_and_key_have_no_secret_alone(kind: str, phases: int) -> None:
    cohort, slot = Cohort(KINDS[kind]), Slot()
    cohort.advance(phases)
    client = cohort.clients[ME]
    secrets = [*secrets_of(client)]
    content = stored.pack(client._state, client.clipped)  # type: ignore[arg-type]
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


def test_sizes_of_states() -> None:
    """The bytes that docs/protocol.md states, for a complete graph of 8."""
    sizes = []
    for params in (make_params(8), make_params(8, security="active")):
        for phases in range(1, 5 if params.active else 4):
            cohort = Cohort(params)
            cohort.advance(phases)
            sizes.append(len(cohort.clients[ME].suspend(Slot())) - len(params.to_bytes()))
    assert sizes == [92, 712, 740, 92, 712, 740, 804]


@examples(50)
@given(st.binary(max_size=300), st.sampled_from(sorted(KINDS)))
def test_check26_any_bytes_are_no_state(data: bytes, kind: str) -> None:
    params = KINDS[kind]
    registry = registry_of(range(params.n_clients)) if params.active else None
    identity = make_identity(ME) if params.active else None
    client = Client(
        ME,
        params,
        policy=testing.toy_policy(params),
        identity=identity,
        registry=registry,
    )
    refused(client, data, Slot(bytes(32)), "version|length|parameters|client|latest")


def test_vectors_are_not_needed_again() -> None:
    """A client restored after its masked input finishes without its vector."""
    cohort = Suspending(KINDS["active"])
    cohort.advance(3)
    cohort.vectors[ME] = np.full(4, np.nan)
    cohort.advance(2)
    assert cohort.server.phase is Phase.FINISHED
