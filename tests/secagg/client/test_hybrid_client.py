"""Suite hybrid at the client: encapsulation keys, contributions, and what is kept of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from frames import bytes_in, leaks
from harness import (
    Cohort,
    altered,
    finish,
    make_identity,
    make_params,
    pieces,
    read,
    registry_of,
    rejects,
)
from rosters import entries_of, roster_of, with_coefficient
from secagg import (
    Client,
    ClientPolicy,
    ParameterError,
    Phase,
    RemoteProtocolError,
    RoundParams,
    SealingKey,
)
from secagg.client import stored
from secagg.protocol import kem
from secagg.protocol.identities import signed_keys
from secagg.protocol.keys import PublicKeys
from secagg.protocol.messages import AdvertiseKeys, Roster, Shares

ME = 2
SECURITY = ["semi-honest", "active"]
POLICY = ClientPolicy(corrupt=0)


def cohort_of(n: int = 4, **changes: object) -> Cohort:
    return Cohort(make_params(n, **{"suite": "hybrid"} | changes))


# ---- encapsulation keys


def with_key(cohort: Cohort, v: int, kem_key: bytes) -> bytes:
    """The roster for client 2 with another e_v, which v signed in the active variant."""
    entries, params = entries_of(cohort.inbox[ME]), cohort.params
    entries[v][2] = kem_key
    if params.active:
        content = signed_keys(params.digest, v, PublicKeys(*entries[v][:3]))
        entries[v][3] = make_identity(v).sign(content)
    return roster_of(cohort.inbox[ME], entries)


@pytest.mark.parametrize("security", SECURITY)
@pytest.mark.parametrize(("at", "value"), [(0, 3329), (300, 3330), (767, 4095)])
def test_check07_encapsulation_key_that_is_not_reduced_is_rejected(at, value, security) -> None:
    """Also if its owner signed it."""
    cohort = cohort_of(security=security)
    cohort.advance(1)
    own = entries_of(cohort.inbox[ME])[3][2]
    wrong = with_key(cohort, 3, with_coefficient(own, at, value))
    rejects(cohort.clients[ME], wrong, "public key")


@pytest.mark.parametrize("security", SECURITY)
def test_check07_encapsulation_key_of_another_client_is_rejected(security: str) -> None:
    for v, owner in ((3, 1), (3, ME)):
        cohort = cohort_of(security=security)
        cohort.advance(1)
        taken = entries_of(cohort.inbox[ME])[owner][2]
        rejects(cohort.clients[ME], with_key(cohort, v, taken), "duplicate key")


@pytest.mark.parametrize("security", SECURITY)
def test_check07_own_encapsulation_key_must_be_in_the_roster(security: str) -> None:
    """Else boxes would be under a key of the server's."""
    cohort = cohort_of(security=security)
    cohort.advance(1)
    rejects(cohort.clients[ME], with_key(cohort, ME, kem.KemPair(bytes(64)).public), "own keys")


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
def test_check20_roster_has_a_key_for_each_id_in_suite_hybrid_alone(suite: str) -> None:
    cohort = cohort_of(suite=suite)
    cohort.advance(1)
    column = read(cohort.inbox[ME], Roster).kem_keys
    assert len(column) == (4 * 1184 if suite == "hybrid" else 0)
    for other in {column[:-1], column[1184:], b"", bytes(8)} - {column}:
        cohort = cohort_of(suite=suite)
        cohort.advance(1)
        rejects(cohort.clients[ME], altered(cohort.inbox[ME], Roster, kem_keys=other), "length")


@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
def test_check56_server_does_not_change_the_suite(suite: str) -> None:
    """Neither for one client nor for all: the client compares the parameters' bytes."""
    other = "x25519" if suite == "hybrid" else "hybrid"
    cohort = cohort_of(suite=suite)
    cohort.advance(1)
    lie = replace(cohort.params, suite=other).to_bytes()
    entries = entries_of(cohort.inbox[ME])
    for v, entry in entries.items():
        entry[2] = kem.KemPair(bytes([v]) * 64).public if other == "hybrid" else b""
    data = altered(roster_of(cohort.inbox[ME], entries), Roster, parameters=lie)
    # keys of another suite alone are above the bound of the roster
    rejects(cohort.clients[ME], data, "parameters" if other == "x25519" else "size")
    cohort = cohort_of(suite=suite)
    cohort.advance(1)
    rejects(cohort.clients[ME], altered(cohort.inbox[ME], Roster, parameters=lie), "parameters")


@pytest.mark.parametrize("security", SECURITY)
def test_check56_pair_is_new_in_every_round_also_with_a_kept_sealing_key(security) -> None:
    """Even if the source of entropy repeats: session and purpose are in the statement."""
    params, key = make_params(4, suite="hybrid", security=security), SealingKey(ME)
    active = security == "active"
    more = {
        "identity": make_identity(ME) if active else None,
        "registry": registry_of(range(4)) if active else None,
        "entropy": bytes,
    }
    sent, seeds = [], set[bytes]()
    for name in (b"one", b"two", b"three"):
        client = Client(
            ME, replace(params, session=name), policy=POLICY, sealing_key=key, **more
        )
        sent.append(read(client.advertise_keys(), AdvertiseKeys))
        state = client._state
        seeds |= {state.mask_pair.seed, *pieces(state.kem_pair.seed, 32)}
    assert len(seeds | {key.pair.seed}) == 3 * 3 + 1
    assert len({m.seal_key for m in sent}) == 1
    assert len({m.mask_key for m in sent}) == len({m.kem_key for m in sent}) == 3


def test_check56_policy_rejects_the_other_suite() -> None:
    strict = replace(POLICY, require_hybrid=True)
    hybrid, other = (make_params(4, suite=suite) for suite in ("hybrid", "x25519"))
    assert Client(ME, hybrid, policy=strict).advertise_keys()
    assert Client(ME, other, policy=POLICY).advertise_keys()
    with pytest.raises(ParameterError, match="x25519"):
        Client(ME, other, policy=strict)
    with pytest.raises(ParameterError):
        ClientPolicy(require_hybrid=1)  # type: ignore[arg-type]


# ---- states


def sizes_of(params: RoundParams, n: int) -> list[int]:
    """Bytes of a state due 0, 1 and 2 or 3 before anybody dropped out (§13)."""
    p, hybrid, active = len(params.to_bytes()), params.suite == "hybrid", params.active
    shared = {
        (False, False): 88 + p + 56 * n,
        (False, True): 56 + p + 88 * n,
        (True, False): 72 + p + 136 * n,
        (True, True): 40 + p + 168 * n,
    }
    entrusted = [36 + p + 88 * n] + [36 + p + 96 * n] * active
    return [92 + p + 64 * hybrid, shared[hybrid, active], *entrusted]


@pytest.mark.parametrize("security", SECURITY)
@pytest.mark.parametrize("suite", ["x25519", "hybrid"])
def test_check48_states_have_the_documented_sizes(suite: str, security: str) -> None:
    for n in (4, 7):
        cohort = cohort_of(n, suite=suite, security=security)
        found = []
        for _ in cohort.phases()[:-1]:
            cohort.advance(1)
            client = cohort.clients[ME]
            content = stored.pack(client._state, ME, client.clipped)  # type: ignore[arg-type]
            found.append(len(stored.seal(bytes(32), ME, cohort.params, content)))
        assert found == sizes_of(cohort.params, n)


class Secrets:
    """Secrets of client 2 by name, and the phases in which its state may have each."""

    def __init__(self, cohort: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
        self.found: dict[str, tuple[list[bytes], set[int]]] = {}
        secrets: list[bytes] = []
        decapsulate = kem.KemPair.decapsulate

        def keeping(pair: kem.KemPair, ciphertext: bytes) -> bytes:
            secrets.append(decapsulate(pair, ciphertext))
            return secrets[-1]

        monkeypatch.setattr(kem.KemPair, "decapsulate", keeping)
        cohort.advance(1)
        state = cohort.clients[ME]._state
        self.found["sealing seed"] = [state.sealing.pair.seed], {1}
        self.found["masking seed"] = [state.mask_pair.seed, state.mask_pair.private], {1}
        self.found["KEM seed"] = [state.kem_pair.seed], {1, 2}
        cohort.advance(1)
        state = cohort.clients[ME]._state
        peers = state.peers
        self.found["b"] = [state.seed], {2}
        self.found["B"] = [*map(bytes, peers.opening)], {2}
        self.found["A"] = [*map(bytes, peers.masking)], {2}
        self.found["p"] = [*map(bytes, peers.own_p)], {2}
        self.found["q"] = [*map(bytes, peers.own_q)], {2}
        others = [c._state.peers for u, c in cohort.clients.items() if u != ME]
        rows = [list(p.ids).index(ME) for p in others]
        self.found["p and q of others"] = (
            [
                bytes(column[row])
                for p, row in zip(others, rows, strict=True)
                for column in (p.own_p, p.own_q)
            ],
            set(),
        )
        cohort.advance(1)
        assert len(secrets) == 4 * 3
        self.found["K"] = secrets, set()


@pytest.mark.parametrize("security", SECURITY)
def test_check29_secrets_of_suite_hybrid_are_dropped_when_their_phase_ends(
    security: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = Secrets(cohort_of(security=security), monkeypatch).found
    cohort = cohort_of(security=security)
    for phase in range(1, len(cohort.phases()) + 1):
        cohort.advance(1)
        client = cohort.clients[ME]
        client._entropy = lambda _: bytes(0)  # the test's own, which remembers its output
        reached = [*bytes_in(client)]
        content = [b"" if phase > 3 else stored.pack(client._state, ME, 0)]  # type: ignore[arg-type]
        for name, (secrets, phases) in known.items():
            kept = phase in phases
            for secret in secrets:
                assert any(secret in data for data in reached) == kept, (name, phase)
                if phase <= 3 and (name, len(secrets)) != ("masking seed", 2):
                    assert (secret in content[0]) == kept, (name, phase)
        client._entropy = cohort.entropy[ME]


@pytest.mark.parametrize("name", ["sealed", "checks"])
def test_check46_error_about_a_box_has_no_secret(name: str, monkeypatch) -> None:
    """Nor its frames: of the round's contributions, seeds and encapsulated secrets."""
    known = Secrets(cohort_of(), monkeypatch).found
    cohort = cohort_of()
    data = cohort.advance(2)[ME]
    items = pieces(getattr(read(data, Shares), name), 1248 if name == "sealed" else 32)
    items[1] = items[1][:-1] + bytes([items[1][-1] ^ 1])
    data = altered(data, Shares, **{name: b"".join(items)})
    with pytest.raises(RemoteProtocolError) as caught:
        cohort.clients[ME].answer(data, np.zeros(4))
    secrets = [secret for of_name, _ in known.values() for secret in of_name]
    assert leaks(caught.value, secrets, __name__) == []
    text = f"{caught.value!r} {vars(caught.value)}"
    assert not any(s.hex()[:16] in text or repr(s)[2:-1] in text for s in secrets)
    assert vars(cohort.clients[ME]._state) == {"phase": Phase.FAILED}


@pytest.mark.parametrize("security", SECURITY)
def test_call_after_a_rejected_input_gives_the_same_message(security: str) -> None:
    """Everything that the message needs is kept until it is made."""
    sent = []
    for spoiled in (False, True):
        cohort = cohort_of(security=security)
        data = cohort.advance(2)[ME]
        if spoiled:
            with pytest.raises(ParameterError):
                cohort.clients[ME].answer(data, np.full(4, np.nan))
        sent.append(cohort.clients[ME].answer(data, np.ones(4)))
    assert sent[0] == sent[1]


# ---- rounds


@pytest.mark.parametrize("security", SECURITY)
@pytest.mark.parametrize("phase", range(1, 4))
def test_check57_sum_is_exact_if_clients_drop_out(phase: int, security: str) -> None:
    cohort = cohort_of(7, security=security)
    cohort.advance(phase)
    cohort.advance(1, without=[1, 4])
    finish(cohort)


def test_check57_sums_of_both_suites_are_equal() -> None:
    sums = []
    for suite in ("x25519", "hybrid"):
        cohort = cohort_of(8, suite=suite, neighbours=6, threshold=4, max_weight=9)
        cohort.advance(2)
        cohort.advance(1, without=[5])
        finish(cohort)
        sums.append(cohort.server.result().integers.tolist())
    assert sums[0] == sums[1]
