"""Rounds with inputs chosen by the tests, and altered messages."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

import msgspec
import numpy as np
import pytest

from secagg import (
    Client,
    ClientPolicy,
    FixedPoint,
    Integers,
    LocalProtocolError,
    Phase,
    Registry,
    RemoteProtocolError,
    RoundParams,
    Server,
    testing,
)
from secagg._fast import reference
from secagg.protocol import NEXT, keys, messages, pair_masks, sealing
from secagg.testing import make_identity as make_identity

ReplayedEntropy = testing.InsecureReplayedEntropy
TWO = ClientPolicy(min_clients=2, min_threshold=1, allow_two_clients=True)
TOY = ClientPolicy(corrupt=0, dropout=0)
"""Policy without colluders and dropouts, for graphs too small to be private by chance."""


def make_params(n: int = 5, threshold: int | None = None, **changes: object) -> RoundParams:
    holders = n if changes.get("neighbours") is None else changes["neighbours"] + 1
    active = changes.get("security") == "active"
    least = 2 * n // 3 + 1 if active else holders // 2 + 1
    settings: dict[str, object] = {
        "n_clients": n,
        "threshold": least if threshold is None else threshold,
        "session": b"round 1" if active else b"",
        "length": 4,
        "encoding": FixedPoint(clip=8.0, rounding="nearest"),
    }
    return RoundParams(**(settings | changes))


def with_count(params: RoundParams) -> RoundParams:
    """The same parameters with the count of clipped elements, if there is room for it."""
    room = params.ring.modulus > params.n_clients * params.length
    return dataclasses.replace(params, count_clipped=room)


def registry_of(ids: Iterable[int]) -> Registry:
    """The public keys of the tests' clients."""
    return Registry({u: make_identity(u).public for u in ids})


def has_coefficients(points: list[int], values: list[int], t: int) -> bool:
    """Return whether a polynomial of at most t coefficients goes through all the points."""
    xs, word = np.array(points, np.uint64), np.array(values, np.uint64)
    dual = reference.m61_mul(reference.m61_lagrange_at_zero(xs), xs)
    rows = reference.m61_errors(xs, dual, word, t)
    return rows is not None and not rows.size


def make_vector(params: RoundParams, u: int) -> np.ndarray:
    rng = np.random.default_rng(u)
    if isinstance(params.encoding, Integers):
        return rng.integers(0, params.encoding.max, params.length, endpoint=True)
    return rng.normal(size=params.length)


class Cohort(testing.Cohort):
    """A round taken apart, whose vectors and weights follow from the ids."""

    def __init__(
        self,
        params: RoundParams,
        ids: Iterable[int] | None = None,
        policy: ClientPolicy | None = None,
        seed: object = 0,
    ) -> None:
        ids = list(range(params.n_clients) if ids is None else ids)
        most = params.max_weight
        super().__init__(
            testing.Round(
                params=params,
                vectors={u: make_vector(params, u) for u in ids},
                weights=None if most is None else {u: 1 + u % most for u in ids},
                dropouts={},
                policy=policy or testing.toy_policy(params),
                seed=seed,
            )
        )

        self.identities = {u: make_identity(u) for u in ids if params.active}

    def phases(self) -> list[Phase]:
        return list(NEXT[self.params.security])


def altered(data: bytes, kind: type[msgspec.Struct], **changes: object) -> bytes:
    """The same message with other fields."""
    message = msgspec.msgpack.decode(data[1:], type=kind)
    return messages.encode(msgspec.structs.replace(message, **changes))


def read(data: bytes, kind: type[msgspec.Struct]) -> msgspec.Struct:
    return msgspec.msgpack.decode(data[1:], type=kind)


def seal_keys_of(
    shared: bytes, session: bytes, mine: tuple[int, bytes], theirs: tuple[int, bytes]
) -> tuple[bytes, bytes]:
    """The keys that seal for one peer, and that open what it sealed; of (id, c ‖ s) each.

    Suite x25519.
    """
    (me, _), (peer, _) = mine, theirs
    ids, publics = np.array([peer], np.uint64), keys.rows_of([theirs[1]], len(theirs[1]))
    secrets = keys.rows_of([shared], len(shared))
    sending, opening = sealing.base_keys(secrets, session, mine, ids, publics)
    return (
        sealing.box_keys(sending, session, me, peer).tobytes(),
        sealing.box_keys(opening, session, peer, me).tobytes(),
    )


def seal_of(key: bytes, session: bytes, sender: int, receiver: int, shares: bytes) -> bytes:
    """Shares for one peer, sealed."""
    peer, text = np.array([receiver], np.uint64), np.frombuffer(shares, np.uint8).reshape(1, -1)
    return sealing.seal(keys.rows_of([key]), session, sender, peer, text).tobytes()


def opening_of(
    key: bytes, session: bytes, sender: int, receiver: int, sealed: bytes
) -> bytes | None:
    """Shares that `seal_of` sealed; None if they are not authentic."""
    peer, box = np.array([sender], np.uint64), np.frombuffer(sealed, np.uint8).reshape(1, -1)
    opened = sealing.open_sealed(keys.rows_of([key]), session, peer, receiver, box)
    return opened[0].tobytes() if opened[1].all() else None


def secret_of(pair: keys.KeyPair, public: bytes) -> bytes | None:
    """The X25519 secret as a client finds it, or None if the public key is unusable."""
    return pair.agree(keys.rows_of([public])).tobytes() if keys.is_usable(public) else None


def mask_key_of(
    shared: bytes, session: bytes, mine: tuple[int, bytes], theirs: tuple[int, bytes]
) -> bytes:
    """The key of the mask with one peer in suite x25519; of (id, s) each."""
    ids, publics = np.array([theirs[0]], np.uint64), keys.rows_of([theirs[1]])
    agreed = pair_masks.agreements(keys.rows_of([shared]), session, mine, ids, publics)
    return pair_masks.mask_keys(agreed, session, mine[0], ids).tobytes()


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


def rejects(client: Client, data: bytes, check: str) -> None:
    """Assert that the client's answer to a message fails by that check."""
    client_rejects(client, lambda: client.answer(data, np.zeros(4)), check)


def client_rejects(client: Client, call: Callable[[], bytes], check: str) -> None:
    """Assert that the call fails by that check and ends the client without secrets."""
    with pytest.raises(RemoteProtocolError) as caught:
        call()
    assert caught.value.check in check.split("|")
    assert caught.value.sender is None
    assert client.phase is Phase.FAILED
    for other in (
        client.advertise_keys,
        lambda: client.share_keys(b""),
        lambda: client.masked_input(b"", np.zeros(4)),
        lambda: client.unmask(b""),
    ):
        with pytest.raises(LocalProtocolError):
            other()


def server_rejects(server: Server, sender: int, data: bytes, check: str) -> None:
    phase, waiting = server.phase, server.waiting
    with pytest.raises(RemoteProtocolError) as caught:
        server.receive(sender, data)
    assert caught.value.check in check.split("|")
    assert caught.value.sender == sender
    assert (server.phase, server.waiting) == (phase, waiting)


def finish(cohort: Cohort) -> None:
    """Run to the end and compare with plain integers."""
    while cohort.server.phase is not Phase.FINISHED:
        cohort.deliver(cohort.step())
    result = cohort.server.result()
    assert result.integers.tolist() == cohort.expected(result.survivors)


_P = 2**255 - 19
_ORDER_8 = (
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
LOW_ORDER = [n.to_bytes(32, "little") for n in (0, 1, *_ORDER_8, _P - 1, _P, _P + 1)]
