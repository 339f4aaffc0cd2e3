"""The active variant: signatures, the consistency round, and rejected messages."""

from __future__ import annotations

import pytest

from harness import (
    Cohort,
    altered,
    client_rejects,
    make_identity,
    make_params,
    read,
    rejects,
)
from rosters import entries_of, roster_of
from secagg import (
    Client,
    ClientPolicy,
    Identity,
    LocalProtocolError,
    ParameterError,
    Registry,
    Server,
    TooFewSurvivors,
)
from secagg.protocol import NEXT
from secagg.protocol.identities import signed_keys, signed_survivors
from secagg.protocol.keys import PublicKeys
from secagg.protocol.messages import (
    ConsistencyRequest,
    UnmaskRequest,
    pack_ids,
)

ids = pack_ids
SEED = bytes(range(32))


def cohort_of(n: int = 7, **changes: object) -> Cohort:
    return Cohort(make_params(n, security="active", **changes))


def at_phase(phases: int, **changes: object) -> tuple[Cohort, Client, bytes]:
    """A cohort after some phases, its client 2, and what the server sent that client."""
    cohort = cohort_of(**changes)
    return cohort, cohort.clients[2], cohort.advance(phases)[2]


# ---- the round


@pytest.mark.parametrize("phase", range(5))
def test_check19_active_below_threshold_unmasks_nothing(phase):
    """Below the threshold nothing is unmasked in the active variant."""
    cohort = cohort_of(7, threshold=6)
    cohort.advance(phase)
    for u, data in cohort.step(without=[0, 1]).items():
        cohort.server.receive(u, data)
    with pytest.raises(TooFewSurvivors) as caught:
        cohort.server.close_round()
    assert caught.value.phase == list(NEXT["active"])[phase]
    with pytest.raises(LocalProtocolError):
        cohort.server.result()


# ---- requirements


@pytest.mark.parametrize("n", [*range(3, 12), 99, 100, 101])
def test_check05_active_thresholds_exceed_two_thirds(n: int) -> None:
    least = min(t for t in range(1, n + 1) if 3 * t > 2 * n)
    assert make_params(n, least, security="active").threshold == least
    with pytest.raises(ParameterError):
        make_params(n, least - 1, security="active")


def test_identity_and_registry_are_needed_exactly_when_active() -> None:
    active, passive = make_params(5, security="active"), make_params(5)
    identity = make_identity(1)
    registry = Registry({1: identity.public, 2: make_identity(2).public})
    for params, given in (
        (active, {}),
        (active, {"registry": registry}),
        (active, {"registry": {1: identity.public}, "identity": identity}),
        (active, {"registry": registry, "identity": b"x" * 32}),
        (active, {"registry": registry, "identity": make_identity(2)}),
        (passive, {"registry": registry}),
        (passive, {"identity": identity}),
    ):
        with pytest.raises(ParameterError):
            Client(1, params, **given)
    for params, given in ((active, None), (passive, registry)):
        with pytest.raises(ParameterError):
            Server(params, registry=given)


def test_check29_identity_shows_only_its_public_half() -> None:
    identity = Identity(SEED)
    assert SEED.hex() not in repr(identity)
    assert identity.public.hex() in repr(identity)
    assert Identity.generate().public != Identity.generate().public
    for wrong in (b"", SEED[1:], SEED + b"1", "x" * 32, None):
        with pytest.raises(ParameterError):
            Identity(wrong)


# ---- line 24: signatures bind session, round, sender and content


def forged(roster: bytes, u: int, parts: dict[int, bytes]) -> bytes:
    """The roster with other parts of an entry: three keys, signature."""
    entries = entries_of(roster)
    for i, part in parts.items():
        entries[u][i] = part
    return roster_of(roster, entries)


@pytest.mark.parametrize("u", [0, 4, 6])
def test_check24_key_signature_binds_params_round_and_sender(u):
    """A signature over keys binds parameters, round, sender and content."""
    digest = make_params(7, suite="hybrid", security="active").digest
    other = make_params(7, suite="hybrid", security="active", session=b"round 2").digest

    def wrong(c: bytes, s: bytes, e: bytes) -> list[bytes]:
        good = signed_keys(digest, u, PublicKeys(c, s, e))
        return [
            signed_keys(other, u, PublicKeys(c, s, e)),
            signed_keys(digest, 5, PublicKeys(c, s, e)),
            signed_keys(digest, u, PublicKeys(s, c, e)),
            signed_keys(digest, u, PublicKeys(c, s, e[:-1])),
            signed_survivors(digest, u, c + s),
            good[:-1],
        ]

    for content in range(6):
        cohort, client, roster = at_phase(1, suite="hybrid")
        c, s, e, _ = entries_of(roster)[u]
        changed = forged(roster, u, {3: cohort.identities[u].sign(wrong(c, s, e)[content])})
        rejects(client, changed, "signature")


# ---- line 23: one U3


def test_check04_own_minimum_counts_for_survivors_and_signers() -> None:
    """Seven or eight reach the threshold, but not a client's own minimum of nine."""
    params, policy = make_params(9, security="active"), ClientPolicy(min_clients=9)
    cohort = Cohort(params, policy=policy)
    client, request = cohort.clients[2], cohort.advance(3)[2]
    rejects(client, altered(request, ConsistencyRequest, survivors=ids(range(8))), "size")
    cohort = Cohort(params, policy=policy)
    other, request = cohort.clients[2], cohort.advance(4)[2]
    message = read(request, UnmaskRequest)
    signed = {"signers": message.signers[:56], "signatures": message.signatures[: 64 * 7]}
    fewer = altered(request, UnmaskRequest, **signed)
    client_rejects(other, lambda: other.unmask(fewer), "size")


def test_check23_exactly_t_signers_are_enough() -> None:
    _, client, request = at_phase(4)
    message = read(request, UnmaskRequest)
    five = {"signers": message.signers[: 8 * 5], "signatures": message.signatures[: 64 * 5]}
    assert client.unmask(altered(request, UnmaskRequest, **five))


def test_check25_active_variant_rejects_a_graph() -> None:
    with pytest.raises(ParameterError):
        make_params(40, 30, neighbours=32, security="active")


def test_check53_colluders_are_counted_of_the_registry() -> None:
    """A lying server draws a small cohort of a large registry, colluders first."""
    identities = {u: make_identity(u) for u in range(10)}
    registry = Registry({u: one.public for u, one in identities.items()})
    params = make_params(3, threshold=3, security="active")
    with pytest.raises(ParameterError):
        Client(0, params, identity=identities[0], registry=registry, policy=ClientPolicy())
    few = Registry({u: identities[u].public for u in range(3)})
    Client(0, params, identity=identities[0], registry=few, policy=ClientPolicy())
    stated = ClientPolicy(colluders=0)
    Client(0, params, identity=identities[0], registry=registry, policy=stated)
