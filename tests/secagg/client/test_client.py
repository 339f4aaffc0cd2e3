"""Messages of a server that a client rejects; a rejection reveals nothing."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import threading
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from forked import in_fork
from harness import (
    Cohort,
    altered,
    client_rejects,
    has_coefficients,
    make_params,
    pieces,
    read,
    rejects,
)
from rosters import entries_of, roster_of
from secagg import (
    Client,
    ClientPolicy,
    FixedPoint,
    Integers,
    LocalProtocolError,
    ParameterError,
    Phase,
    RemoteProtocolError,
)
from secagg.protocol import messages
from secagg.protocol.messages import (
    SEALED_BYTES,
    AdvertiseKeys,
    MaskedInput,
    Shares,
    UnmaskRequest,
    pack_ids,
)

ids = pack_ids


def at_phase(phases: int, n: int = 6, **changes: object) -> tuple[Cohort, Client, bytes]:
    """A cohort after some phases, its client 2, and what the server sent that client."""
    cohort = Cohort(make_params(n, **changes))
    return cohort, cohort.clients[2], cohort.advance(phases)[2]


# ---- keys and state


def test_check01_every_session_has_fresh_keys() -> None:
    params = make_params(3)
    drawn: list[bytes] = []

    def entropy(size: int) -> bytes:
        drawn.append(os.urandom(size))
        return drawn[-1]

    publics = set()
    for _ in range(2):
        message = read(Client(1, params, entropy=entropy).advertise_keys(), AdvertiseKeys)
        publics |= {message.seal_key, message.mask_key}
    assert len(publics) == 4
    assert [len(seed) for seed in drawn] == [32] * 4


def test_check01_client_is_never_copied_and_masks_once() -> None:
    """A client cannot be copied, stored or made to mask twice."""
    _, client, shares = at_phase(2)
    for clone in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(LocalProtocolError):
            clone(client)
    client.masked_input(shares, np.zeros(4))
    with pytest.raises(LocalProtocolError):
        client.masked_input(shares, np.ones(4))


# ---- unmasking: never both shares


def test_check02_never_both_shares_of_one_peer() -> None:
    """For every split of U2, a client reveals one share of each peer."""
    for survivors in range(1 << 5):
        _, client, request = at_phase(3, n=5)
        named = [u for u in range(5) if survivors >> u & 1]
        rest = [u for u in range(5) if not survivors >> u & 1]
        state = client._state
        kinds = {u: (state.self_shares[u], state.mask_shares.get(u)) for u in range(5)}
        split = altered(request, UnmaskRequest, survivors=ids(named), dropped=ids(rest))
        if 2 not in named or len(named) < 3:
            rejects(client, split, "size" if 2 in named else "self")
            continue
        answer = client.unmask(split)
        revealed = pieces(read(answer, messages.UnmaskShares).shares, messages.SHARE_BYTES)
        for u, share in zip(named + rest, revealed, strict=True):
            assert share == kinds[u][u in rest]
            assert kinds[u][u not in rest] not in revealed
        for again in (request, split):
            with pytest.raises(LocalProtocolError):
                client.unmask(again)


def test_check03_only_clients_that_shared_keys_can_be_named() -> None:
    """Client 5 advertised keys but never shared them: it is in neither set."""
    cohort = Cohort(make_params(6))
    cohort.advance(1)
    cohort.advance(1, without=[5])
    request = cohort.advance(1)[2]
    client = cohort.clients[2]
    rejects(client, altered(request, UnmaskRequest, dropped=ids([5])), "unknown id")


# ---- sizes against the client's own policy


def rewritten(data: bytes, change: Callable[[dict[int, list[bytes]]], object]) -> bytes:
    """The roster after a change to its entries, consistent again."""
    entries = entries_of(data)
    change(entries)
    return roster_of(data, entries)


@pytest.mark.parametrize("phases", [1, 2, 3])
def test_check04_own_minimum_applies_in_every_round(phases: int) -> None:
    """The threshold is 3; a client with a minimum of 6 never continues with 5."""
    params = make_params(6, 4)
    strict = ClientPolicy(min_clients=6)
    cohort = Cohort(params)
    demanding = cohort.clients[2] = Client(2, params, policy=strict, entropy=cohort.entropy[2])
    cohort.advance(phases - 1)
    data = cohort.advance(1, without=[5])[2]
    call = [
        lambda: demanding.share_keys(data),
        lambda: demanding.masked_input(data, np.zeros(4)),
        lambda: demanding.unmask(data),
    ][phases - 1]
    client_rejects(demanding, call, "size")


def test_check06_fewer_than_three_inputs_are_never_unmasked() -> None:
    """n = 3, t = 2: two survivors would learn each other's input."""
    _, client, request = at_phase(3, n=3)
    rejects(
        client, altered(request, UnmaskRequest, survivors=ids([1, 2]), dropped=ids([0])), "size"
    )


# ---- the cohort that turned up


ONE_IN_TWENTY = ClientPolicy(corrupt=0.05, dropout=0.05)


def of_thousand(present: int, policy: ClientPolicy, **changes: object) -> tuple[Client, bytes]:
    """A client of a round for 1,000 on a graph, and its roster when so many turn up."""
    settings = {"n": 1000, "threshold": 18, "neighbours": 34, "encoding": Integers(max=1)}
    cohort = Cohort(make_params(**(settings | changes)), range(present), policy)
    return cohort.clients[2], cohort.advance(1)[2]


@pytest.mark.parametrize(
    ("present", "accepted"), [(19, False), (120, False), (907, False), (908, True)]
)
def test_check43_neighbours_and_threshold_are_judged_at_the_roster(present, accepted):
    """(34, 18) was chosen for 1,000 clients, of which 50 collude, and they all come."""
    shares_or_rejects(*of_thousand(present, ONE_IN_TWENTY), accepted)


def shares_or_rejects(client: Client, roster: bytes, accepted: bool) -> None:
    if accepted:
        assert client.share_keys(roster)
    else:
        rejects(client, roster, "size")


# ---- rosters


NEW = os.urandom(32)


def test_check07_roster_without_the_client_or_with_more_is_rejected() -> None:
    for change, check in (
        (lambda e: e.pop(2), "own keys"),
        (lambda e: e.update({9: [NEW, bytes(32), b"", b""]}), "cohort"),
    ):
        _, client, roster = at_phase(1)
        rejects(client, rewritten(roster, change), check)


# ---- sealed shares


def with_sealed(data: bytes, change: Callable[[list[bytes]], object]) -> bytes:
    sealed = pieces(read(data, Shares).sealed, SEALED_BYTES["x25519"])
    change(sealed)
    return altered(data, Shares, sealed=b"".join(sealed))


def test_check09_altered_share_is_rejected() -> None:
    def flip(sealed: list[bytes]) -> None:
        sealed[3] = sealed[3][:-1] + bytes([sealed[3][-1] ^ 1])

    _, client, shares = at_phase(2)
    rejects(client, with_sealed(shares, flip), "sealed share")


@pytest.mark.parametrize(
    ("changes", "check"),
    [
        ({"session": bytes(32)}, "session"),
        ({"sealed": b""}, "length"),
        ({"senders": ids([0, 1, 3, 4, 9])}, "unknown id"),
        ({"senders": ids([0, 1, 3, 3, 4])}, "ids"),
    ],
)
def test_check20_shares_from_elsewhere_are_rejected(changes, check):
    """Shares of the wrong session, length or sender are rejected."""
    _, client, shares = at_phase(2)
    rejects(client, altered(shares, Shares, **changes), check)


# ---- masks and weights


def test_check16_weight_is_only_sent_under_a_mask() -> None:
    """Two rounds that differ in the weights alone differ in the masked values alone."""
    params = make_params(4, max_weight=1000, modulus_bits=48)
    rounds = [Cohort(params), Cohort(params)]
    rounds[1].weights = dict.fromkeys(range(4), 1000)
    for cohort in rounds:
        cohort.advance(4)
    for phase, (first, second) in enumerate(zip(rounds[0].sent, rounds[1].sent, strict=True)):
        for u in first:
            assert (first[u] == second[u]) == (phase != 2)
    values = [read(cohort.sent[2][0], MaskedInput).values for cohort in rounds]
    assert len(values[0]) == len(values[1]) == 5 * 6
    assert values[0][-6:] != (1).to_bytes(6, "little")


ZEROS = np.zeros(4)


@pytest.mark.parametrize(
    ("vector", "weight"),
    [
        *((ZEROS, weight) for weight in (10, -1, 1 << 40, 2.0, True, "3", None)),
        (np.array([0, np.nan, 0, 0]), 1),
        (np.zeros(5), 1),
        (np.zeros(4, dtype=np.int32), 1),
        ([0.0] * 4, 1),
        (None, 3),
    ],
)
def test_check16_input_that_is_rejected_sends_and_shows_nothing(vector, weight):
    """The weight is private; the next call gives the output of a client without mistakes."""
    _, client, good = at_phase(2, max_weight=9)
    with pytest.raises(ParameterError) as caught:
        client.answer(good, vector, weight)
    assert str(1 << 40) not in str(caught.value)
    assert client.phase is Phase.MASKED_INPUT
    _, plain, shares = at_phase(2)
    with pytest.raises(ParameterError):
        plain.answer(shares, ZEROS, 1)
    _, first, _ = at_phase(2, max_weight=9)
    assert client.answer(good, ZEROS, 9) == first.answer(good, ZEROS, 9)


# ---- one call for a transport


# ---- secrets


def _reachable(root: object) -> list[bytes]:
    """Every bytes object that can be reached from an object."""
    seen, found, todo = set(), [], [root]
    while todo:
        item = todo.pop()
        if id(item) in seen or isinstance(item, type):
            continue
        seen.add(id(item))
        if isinstance(item, (bytes, bytearray)):
            found.append(bytes(item))
        elif not callable(item) or item is root:
            todo += gc.get_referents(item)
    return found


def seeds_of(client_id: int) -> list[bytes]:
    """Seeds of sealing and masking, and b, of a client of ``Cohort(make_params(4))``."""
    cohort = Cohort(make_params(4))
    cohort.advance(1)
    keys = cohort.clients[client_id]._state
    cohort.advance(1)
    return [keys.sealing.pair.seed, keys.mask_pair.seed, cohort.clients[client_id]._state.seed]


@pytest.mark.parametrize("phases", [1, 2, 3, 4])
def test_check29_secrets_are_dropped_when_their_phase_ends(phases: int) -> None:
    cohort = Cohort(make_params(4))
    client, drawn = cohort.clients[2], cohort.entropy[2].drawn
    cohort.advance(phases)
    client._entropy = os.urandom
    seal_seed, mask_seed, b = seeds_of(2)
    reached = _reachable(client._state)
    assert (seal_seed in reached) == (phases == 1)
    assert (mask_seed in reached) == (phases == 1)
    assert (b in reached) == (phases == 2)
    assert not set(drawn) & set(reached), "the entropy behind them"
    shares = [b for b in reached if len(b) in (messages.SHARE_BYTES, 2 * messages.SHARE_BYTES)]
    assert bool(shares) == (phases in (2, 3))


def test_check29_nothing_secret_in_reprs_or_errors() -> None:
    cohort = Cohort(make_params(4))
    texts = []
    for phases in range(4):
        texts += [repr(cohort.server), str(vars(cohort.server).keys())]
        for u, client in cohort.clients.items():
            texts += [repr(client), repr(client._state)]
            if u == 3 and phases:
                call = [client.share_keys, client.masked_input, client.unmask][phases - 1]
                arguments = [np.zeros(4)] if phases == 2 else []
                with pytest.raises(RemoteProtocolError) as caught:
                    call(cohort.sent[phases - 1][0], *arguments)
                texts += [repr(caught.value), str(caught.value), repr(caught.value.__dict__)]
                assert caught.value.__cause__ is None
                cohort = Cohort(make_params(4))
                cohort.advance(phases)
        cohort.advance(1)
    for u, entropy in cohort.entropy.items():
        for secret in (*entropy.drawn, *seeds_of(u)):
            for shown in (secret.hex(), repr(secret)[2:-1], secret[:8].hex()):
                assert not any(shown in text for text in texts)


def test_check29_failed_client_keeps_no_secret() -> None:
    _, client, _ = at_phase(3)
    rejects(client, b"\x04", "encoding")
    assert _reachable(client._state) == []


@pytest.mark.parametrize("phases", [2, 3, 4])
def test_check29_only_the_state_has_secrets(phases: int) -> None:
    """The client itself, not only its state: every other attribute is public."""
    cohort = Cohort(make_params(4))
    client = cohort.clients[2]
    cohort.advance(phases)
    public = ("_state", "_entropy", "params", "policy")
    reached = [_reachable(value) for name, value in vars(client).items() if name not in public]
    assert not any(reached)


# ---- a client's sharings


def test_check10_clients_sharings_have_t_coefficients() -> None:
    """Every limb of b and of s, from its holders' shares: t coefficients, not t − 1."""
    cohort = Cohort(make_params(6, 4))
    cohort.advance(2)
    cohort.step()
    states = {u + 1: client._state for u, client in cohort.clients.items()}
    for kind in ("self_shares", "mask_shares"):
        shares = {x: getattr(state, kind).get(2) for x, state in states.items()}
        held = {x: np.frombuffer(share, "<u8") for x, share in shares.items() if share}
        assert len(held) >= 5
        for column in np.array(list(held.values())).T.tolist():
            assert [has_coefficients(list(held), column, t) for t in (3, 4)] == [False, True]


# ---- threads and forks


def test_check01_two_threads_get_one_output_per_mask() -> None:
    """The second thread comes while the first draws its rounding bits."""
    _, client, shares = at_phase(2, encoding=FixedPoint(8.0))
    outcomes: list[object] = []
    threads: list[threading.Thread] = []

    def second() -> None:
        try:
            outcomes.append(client.masked_input(shares, np.ones(4)))
        except LocalProtocolError as error:
            outcomes.append(type(error))

    def entropy(size: int) -> bytes:
        if not threads:  # were the second let in, it would draw too, and start a third
            threads.append(threading.Thread(target=second, daemon=True))
            threads[0].start()
            threads[0].join(timeout=60)  # only so that waiting for each other fails
        return bytes(size)

    client._entropy = entropy
    assert client.masked_input(shares, np.zeros(4))
    assert outcomes == [LocalProtocolError]


@pytest.mark.parametrize("same_id", [False, True], ids=["child", "child in a container"])
def test_check01_forked_client_raises(same_id: bool) -> None:
    _, client, shares = at_phase(2)
    call = partial(client.masked_input, shares, np.zeros(4))
    assert in_fork(os.fork, call, same_id) == "LocalProtocolError"
    assert call()


@pytest.mark.parametrize("phases", [1, 2, 3])
def test_message_that_is_not_bytes_raises_parameter_error(phases: int) -> None:
    """Transports may pass bytearrays and memoryviews."""
    cohort, client, data = at_phase(phases)
    arguments = [np.zeros(4)] if phases == 2 else []
    call = [client.share_keys, client.masked_input, client.unmask][phases - 1]
    for wrong in (None, "text", 5):
        with pytest.raises(ParameterError):
            call(wrong, *arguments)
        with pytest.raises(ParameterError):
            cohort.server.receive(2, wrong)
    assert call(memoryview(bytearray(data)), *arguments)
