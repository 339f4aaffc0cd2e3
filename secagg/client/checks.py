"""Validation of the server's messages by a client, before the client answers.

The checks cover the sets U1 ⊇ U2 ⊇ … ⊇ U5 (see `secagg.protocol.phases`), their sizes and the
signatures. A client on a graph sees only its neighbours and itself in each set. Such a client
takes the number of all clients from the server, which drew the graph. Such a client cannot
count the parameters' `min_survivors` either. No other check relies on a size that the server
states. A failed check raises RemoteProtocolError with the check's name.

In the active variant every client signs one U3, and reveals shares only for a U3 that at least
t clients signed. Two different sets would need 2t signatures. Fewer signatures exist if less
than a third of all clients lie and t is above two thirds of all (Bonawitz 2017, §6.2).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NoReturn

from secagg.errors import RemoteProtocolError
from secagg.protocol import ClientPolicy, Phase, Registry, RoundParams, dealing
from secagg.protocol.identities import SIGNATURE_BYTES, signed_keys, signed_survivors
from secagg.protocol.kem import KEY_BYTES as KEM_KEY_BYTES
from secagg.protocol.keys import KEY_BYTES, PublicKeys, roster_digest
from secagg.protocol.ledger import Page
from secagg.protocol.messages import (
    CHECK_BYTES,
    POINT_BYTES,
    SEALED_BYTES,
    Roster,
    Shares,
    UnmaskRequest,
    unpack_ids,
)
from secagg.protocol.params_bytes import compare


def check_roster(
    roster: Roster,
    params: RoundParams,
    policy: ClientPolicy,
    me: tuple[int, PublicKeys],
    registry: Registry | None,
) -> dict[int, PublicKeys]:
    """Validate the roster and return the holders of this client's shares, with their keys.

    `me` has the id of this client, and the public keys that this client advertised. `registry`
    verifies the signatures, and is None in the semi-honest variant. The holders have ascending
    ids and include this client.
    """
    phase = Phase.SHARE_KEYS
    elsewhere, why = compare(params.to_bytes(), roster.parameters, "at the server")
    if elsewhere:
        reject(phase, "session", why)
    if why:
        reject(phase, "parameters", f"{why}; give both sides the same")
    ids = _ids(phase, roster.ids)
    publics = _public_keys(roster, ids, params)
    if publics.get(me[0]) != me[1]:
        reject(
            phase, "own keys", "this client's id is missing from the roster or has other keys"
        )
    advertised = [key for keys in publics.values() for key in keys if key]
    if len(set(advertised)) != len(advertised):
        reject(phase, "duplicate key", "a public key appears twice")
    if not len(ids) <= roster.size <= params.n_clients:
        reject(
            phase, "cohort", f"{roster.size} clients; this round has at most {params.n_clients}"
        )
    if len(ids) != min(roster.size, params.holders):
        reject(phase, "neighbours", f"the roster has {len(ids)} of {roster.size} clients")
    check_size(phase, len(ids), _fewest(params), policy)
    registered = 0 if registry is None else len(registry)
    # the same colluders weigh more among the clients that came than among n_clients
    objection = policy.objection(params, roster.size, registered)
    if objection is not None:
        reject(phase, "size", objection)
    # on a graph the digest covers clients that this client does not see
    if len(ids) == roster.size and roster_digest(publics) != roster.digest:
        reject(phase, "digest", "the roster's digest differs from that of the session")
    signed = {u: signed_keys(params.digest, u, publics[u]) for u in ids if params.active}
    _check_signatures(phase, roster.signatures, signed, registry, "these keys for this round")
    return publics


def _public_keys(
    roster: Roster, ids: tuple[int, ...], params: RoundParams
) -> dict[int, PublicKeys]:
    """Return the public keys of a roster by id; raise unless each column has one for each."""
    kem_bytes = KEM_KEY_BYTES if params.suite == "hybrid" else 0
    columns = []
    for name, size in (("seal", KEY_BYTES), ("mask", KEY_BYTES), ("kem", kem_bytes)):
        joined = getattr(roster, f"{name}_keys")
        if len(joined) != size * len(ids):
            why = f"{name}_keys has {len(joined)} bytes; expected {size} for each of {len(ids)}"
            reject(Phase.SHARE_KEYS, "length", f"{why} ids")
        columns.append([joined[size * i : size * (i + 1)] for i in range(len(ids))])
    return dict(zip(ids, map(PublicKeys, *columns), strict=True))


def _check_signatures(
    phase: Phase,
    signatures: bytes,
    signed: Mapping[int, bytes],
    registry: Registry | None,
    what: str,
) -> None:
    """Validate signatures of clients over `signed` bytes, which errors call `what`."""
    if len(signatures) != SIGNATURE_BYTES * len(signed):
        reject(phase, "length", f"{len(signatures)} bytes of signatures for {len(signed)} ids")
    for i, (u, content) in enumerate(signed.items()):
        if registry is None or u not in registry:
            reject(phase, "unknown client", f"client {u} is not in this client's registry")
        signature = signatures[SIGNATURE_BYTES * i : SIGNATURE_BYTES * (i + 1)]
        if not registry.verifies(u, content, signature):
            reject(phase, "signature", f"client {u} did not sign {what}")


def check_senders(
    senders: bytes, holders: Iterable[int], params: RoundParams, policy: ClientPolicy, me: int
) -> tuple[int, ...]:
    """Validate the senders of the shares and return them, ascending ids without `me`.

    `senders` are packed ids, and `holders` the ids in this client's roster.
    """
    phase = Phase.MASKED_INPUT
    ids = _ids(phase, senders)
    if me in ids:
        reject(phase, "reflection", "this client is among the senders of its own shares")
    if not set(ids) <= set(holders):
        reject(phase, "unknown id", "a sender is not in the roster")
    # this client is in U2, too, and is not among the senders
    check_size(phase, len(ids) + 1, _fewest(params), policy)
    return ids


def check_columns(message: Shares, count: int, holders: int, params: RoundParams) -> None:
    """Validate that each column of the shares of `count` senders has one item for each.

    `holders` is the number of ids in this client's roster, which gives the length of a path.
    """
    sizes = {
        "sealed": SEALED_BYTES[params.suite],
        "checks": CHECK_BYTES if params.suite == "hybrid" else 0,
    }
    signed = {
        "commitments": 32,
        "dealt": SIGNATURE_BYTES,
        "points": POINT_BYTES,
        "hashes": 2 * dealing.HASH_BYTES,
        "paths": dealing.HASH_BYTES * dealing.depth(holders),
    }
    sizes |= signed if params.active else dict.fromkeys(signed, 0)
    for name, size in sizes.items():
        column = getattr(message, name)
        if len(column) != size * count:
            why = f"{name} has {len(column)} bytes; expected {size} for each of {count} senders"
            reject(Phase.MASKED_INPUT, "length", why)


def check_survivors(
    packed: bytes, u2: Collection[int], params: RoundParams, policy: ClientPolicy, me: int
) -> None:
    """Validate the survivors U3, as packed ids, that client `me` is asked to sign.

    `u2` are the ids of the clients with a share at this client, `me` included.
    """
    phase = Phase.CONSISTENCY_CHECK
    survivors = _ids(phase, packed)
    if not set(u2).issuperset(survivors):
        reject(phase, "unknown id", "a client is named that never shared its keys")
    if me not in survivors:
        reject(phase, "self", "this client sent its input and is not among the survivors")
    check_size(phase, len(survivors), _fewest(params), policy)


def check_unmask_request(
    request: tuple[bytes, bytes],
    u2: Iterable[int],
    params: RoundParams,
    policy: ClientPolicy,
    me: int,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Validate an unmask request and return the survivors and the dropped-out clients.

    `request` has both sets as packed ids; `u2` are the clients with a share at this
    client. The sets must be disjoint and make up `u2`, with client `me` among the survivors
    (Bonawitz 2017, round 4). Both sets are returned as ascending ids.
    """
    phase = Phase.UNMASKING
    survivors, dropped = (_ids(phase, ids) for ids in request)
    # t shares of each of a client's two secrets would reveal the client's vector
    if set(survivors) & set(dropped):
        reject(phase, "both shares", "a client is named a survivor and dropped")
    known = set(u2)
    if not known.issuperset(survivors) or not known.issuperset(dropped):
        reject(phase, "unknown id", "a client is named that never shared its keys")
    if me not in survivors:
        reject(phase, "self", "this client sent its input and is not among the survivors")
    # both sets are disjoint and within `known`, so equal counts mean that nobody is missing
    if len(survivors) + len(dropped) != len(known):
        reject(phase, "missing id", "a client that shared its keys is not named")
    check_size(phase, len(survivors), _fewest(params), policy)
    return survivors, dropped


def check_agreement(
    request: UnmaskRequest,
    agreed: bytes | None,
    session: bytes,
    params: RoundParams,
    policy: ClientPolicy,
    registry: Registry | None,
) -> None:
    """Validate that enough clients signed the survivors of an unmask request.

    `check_unmask_request` has accepted the request. `agreed` has the packed ids of the
    survivors that this client signed. `agreed` and `registry` are None in the semi-honest
    variant.
    """
    phase = Phase.UNMASKING
    if registry is None:
        if request.signers or request.signatures:
            reject(phase, "length", "signatures in a semi-honest round, which has none")
        return
    # the signatures are verified over these bytes, so all signers agreed on this client's U3
    if request.survivors != agreed:
        reject(phase, "consistency", "the survivors differ from those this client signed")
    signers = _ids(phase, request.signers, "the signers' ids")
    survivors = unpack_ids(request.survivors)
    if survivors is None or not set(survivors).issuperset(signers):
        reject(phase, "unknown id", "a signer is not among the survivors")
    check_size(phase, len(signers), params.least, policy)  # signatures are no inputs
    signed = {v: signed_survivors(session, v, request.survivors) for v in signers}
    _check_signatures(phase, request.signatures, signed, registry, "these survivors")


def check_ledger(page: Page, survivors: bytes, phase: Phase) -> None:
    """Record the survivors in the ledger; raise if an earlier cohort is too close.

    `survivors` are packed ids that have passed all other checks.
    """
    difference = page.record(survivors)
    if difference:
        reject(
            phase,
            "ledger",
            f"the survivors differ from an earlier cohort by {difference} clients, and this "
            f"client's ledger asks for {page.ledger.min_difference}",
        )


def _ids(phase: Phase, packed: bytes, name: str = "the ids") -> tuple[int, ...]:
    """Return packed ids; raise unless they are strictly ascending."""
    ids = unpack_ids(packed)
    if ids is None:
        reject(phase, "ids", f"{name} are not strictly ascending")
    return ids


def _fewest(params: RoundParams) -> int:
    """Return the fewest clients of a list; a client on a graph sees its neighbours only."""
    return params.min_survivors if params.neighbours is None else params.least


def check_size(phase: Phase, size: int, fewest: int, policy: ClientPolicy) -> None:
    """Raise if `size` clients are fewer than the parameters or this client's policy need."""
    if size < max(fewest, policy.min_clients):
        reject(
            phase,
            "size",
            f"{size} clients are too few: the parameters ask for {fewest} and this client's "
            f"policy for {policy.min_clients}",
        )


def reject(phase: Phase, check: str, why: str) -> NoReturn:
    """Raise the error for a message of the server that breaks the protocol."""
    raise RemoteProtocolError(why, sender=None, phase=phase, check=check)
