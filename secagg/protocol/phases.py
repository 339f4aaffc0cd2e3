"""The rounds of the protocol, their order, and the checks U1 ⊇ U2 ⊇ … ⊇ U5 that clients make.

A round runs through the phases below, on the server and on each client alike; a client's
phase is the message it sends next, the server's the message it waits for. U1 are the clients
that advertised keys, U2 those that shared them, U3 those whose masked input is in the sum, U4
those that signed U3 (active variant only), U5 those that answer the unmask request (Bonawitz
2017, Figure 4). What round 3 adds is in ``consistency``.

A client on a graph sees only its neighbours, so each check is on what it sees: its
neighbourhood, itself included. Every check here is the client's own; the server's word for
the size of anything is never enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NoReturn

from secagg.errors import LocalProtocolError, RemoteProtocolError
from secagg.protocol.identities import SIGNATURE_BYTES, Registry, signed_keys
from secagg.protocol.keys import roster_digest
from secagg.protocol.messages import Roster, unpack_ids
from secagg.protocol.params import RoundParams, Security
from secagg.protocol.policy import ClientPolicy

__all__ = [
    "NEXT",
    "Phase",
    "check_roster",
    "check_senders",
    "check_size",
    "check_unmask_request",
    "out_of_order",
    "refuse",
]


class Phase(StrEnum):
    """Where a machine stands."""

    ADVERTISE_KEYS = "advertise_keys"
    SHARE_KEYS = "share_keys"
    MASKED_INPUT = "masked_input"
    CONSISTENCY_CHECK = "consistency_check"
    UNMASKING = "unmasking"
    FINISHED = "finished"
    FAILED = "failed"


NEXT: Mapping[Security, Mapping[Phase, Phase]] = {
    "semi-honest": {
        Phase.ADVERTISE_KEYS: Phase.SHARE_KEYS,
        Phase.SHARE_KEYS: Phase.MASKED_INPUT,
        Phase.MASKED_INPUT: Phase.UNMASKING,
        Phase.UNMASKING: Phase.FINISHED,
    },
    "active": {
        Phase.ADVERTISE_KEYS: Phase.SHARE_KEYS,
        Phase.SHARE_KEYS: Phase.MASKED_INPUT,
        Phase.MASKED_INPUT: Phase.CONSISTENCY_CHECK,
        Phase.CONSISTENCY_CHECK: Phase.UNMASKING,
        Phase.UNMASKING: Phase.FINISHED,
    },
}
"""The transition tables. FINISHED and FAILED are terminal; any phase may fail."""


def out_of_order(call: str, phase: Phase, *, resumable: bool = False) -> LocalProtocolError:
    """Return the error for a call that is not due in `phase`; nothing has changed.

    A machine that has ended is `resumable` when its journal goes on where it stopped.
    """
    if resumable:
        remedy = "this server has ended; open its journal again and use Server.resume"
    elif phase in (Phase.FINISHED, Phase.FAILED):
        remedy = "this machine has ended; make a new one"
    else:
        remedy = f"{phase} comes next"
    return LocalProtocolError(f"{call} is out of order in phase {phase}: {remedy}")


def check_roster(
    roster: Roster,
    params: RoundParams,
    policy: ClientPolicy,
    me: tuple[int, bytes, bytes],
    registry: Registry | None,
) -> dict[int, tuple[bytes, bytes]]:
    """Check the roster a client was sent, before it computes anything with it.

    Parameters
    ----------
    roster : Roster
    params, policy
        The client's own.
    me : (id, public sealing key, public masking key)
        As the client advertised them.
    registry : Registry or None
        Whose signatures the keys bear, in the active variant.

    Returns
    -------
    dict of id to (sealing key, masking key): the holders of this client's shares, ascending.

    Raises
    ------
    RemoteProtocolError
        Names the check that failed.
    """
    phase = Phase.SHARE_KEYS
    if roster.parameters != params.digest:
        refuse(phase, "parameters", "the server runs this round with other parameters")
    ids = unpack_ids(roster.ids)
    if ids is None:
        refuse(phase, "ids", "the ids are not strictly ascending")
    if len(roster.seal_keys) != 32 * len(ids) or len(roster.mask_keys) != 32 * len(ids):
        refuse(phase, "length", f"not one pair of keys for each of {len(ids)} ids")
    entries = [
        (u, roster.seal_keys[32 * i : 32 * i + 32], roster.mask_keys[32 * i : 32 * i + 32])
        for i, u in enumerate(ids)
    ]
    if me not in entries:
        refuse(phase, "own keys", "this client's id is missing or bears other keys")
    if len({key for _, c, s in entries for key in (c, s)}) != 2 * len(entries):
        refuse(phase, "duplicate key", "a public key appears twice")
    if not len(ids) <= roster.size <= params.n_clients:
        refuse(phase, "cohort", f"{roster.size} clients where {params.n_clients} is the most")
    if len(ids) != min(roster.size, params.holders):
        refuse(phase, "neighbours", f"{len(ids)} of {roster.size} clients in the roster")
    check_size(phase, len(ids), params, policy)
    if len(ids) == roster.size and roster_digest(entries) != roster.digest:
        refuse(phase, "digest", "the roster is not the one the session is named after")
    _check_signatures(entries, roster.signatures, params, registry)
    return {u: (c, s) for u, c, s in entries}


def _check_signatures(
    entries: list[tuple[int, bytes, bytes]],
    signatures: bytes,
    params: RoundParams,
    registry: Registry | None,
) -> None:
    phase = Phase.SHARE_KEYS
    if len(signatures) != (SIGNATURE_BYTES * len(entries) if params.active else 0):
        refuse(phase, "length", f"{len(signatures)} bytes of signatures for {len(entries)} ids")
    if registry is None:
        return
    for i, (u, seal_key, mask_key) in enumerate(entries):
        if u not in registry:
            refuse(phase, "unknown client", f"client {u} is not in this client's registry")
        signature = signatures[SIGNATURE_BYTES * i : SIGNATURE_BYTES * (i + 1)]
        if not registry.verifies(
            u, signed_keys(params.digest, u, seal_key, mask_key), signature
        ):
            refuse(phase, "signature", f"client {u} did not sign these keys for this round")


def check_senders(
    senders: bytes,
    holders: Iterable[int],
    params: RoundParams,
    policy: ClientPolicy,
    me: int,
) -> tuple[int, ...]:
    """Check which neighbours shared their keys: U2 as this client sees it, itself left out.

    Returns
    -------
    tuple of ids, ascending.

    Raises
    ------
    RemoteProtocolError
        Names the check that failed.
    """
    phase = Phase.MASKED_INPUT
    ids = unpack_ids(senders)
    if ids is None:
        refuse(phase, "ids", "the ids are not strictly ascending")
    if me in ids:
        refuse(phase, "reflection", "this client's own shares were handed back to it")
    if not set(ids) <= set(holders):
        refuse(phase, "unknown id", "a sender is not in the roster")
    check_size(phase, len(ids) + 1, params, policy)
    return ids


def check_unmask_request(
    request: tuple[bytes, bytes],
    u2: Iterable[int],
    params: RoundParams,
    policy: ClientPolicy,
    me: int,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Check whose masks a client is asked to help remove (Bonawitz 2017, round 4).

    Parameters
    ----------
    request : (survivors, dropped)
        Packed ids as received.
    u2 : ids
        The clients whose shares this client holds, itself included.
    params, policy, me
        The client's own.

    Returns
    -------
    survivors, dropped : tuples of ids, ascending
        Disjoint, together all of `u2`; this client among the survivors.

    Raises
    ------
    RemoteProtocolError
        Names the check that failed.
    """
    phase = Phase.UNMASKING
    survivors, dropped = (unpack_ids(ids) for ids in request)
    if survivors is None or dropped is None:
        refuse(phase, "ids", "the ids are not strictly ascending")
    if set(survivors) & set(dropped):
        refuse(phase, "both shares", "a client is named a survivor and dropped")
    known = set(u2)
    if not known.issuperset(survivors) or not known.issuperset(dropped):
        refuse(phase, "unknown id", "a client is named that never shared its keys")
    if me not in survivors:
        refuse(phase, "self", "this client sent its input and is not among the survivors")
    if len(survivors) + len(dropped) != len(known):
        refuse(phase, "missing id", "a client that shared its keys is not named")
    check_size(phase, len(survivors), params, policy)
    return survivors, dropped


def check_size(phase: Phase, size: int, params: RoundParams, policy: ClientPolicy) -> None:
    """Refuse a set of clients that is too small for the parameters or for this client."""
    if size < max(params.min_survivors, policy.min_clients):
        refuse(
            phase,
            "size",
            f"{size} clients; the threshold is {params.threshold} and this client insists on "
            f"{max(params.min_survivors, policy.min_clients)}",
        )


def refuse(phase: Phase, check: str, why: str) -> NoReturn:
    """Raise the error for a message of the server that breaks the protocol."""
    raise RemoteProtocolError(why, sender=None, phase=phase, check=check)
