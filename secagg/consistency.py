"""Round 3 as a client sees it, and what it adds to round 4 (Bonawitz 2017, Figure 4, active).

Every client signs the one U3 it was shown, and reveals shares only for a U3 that at least t
clients signed. Two sets would need 2t signatures; with fewer than a third of the clients lying
and t above two thirds there are not that many (§6.2).
"""

from __future__ import annotations

from collections.abc import Collection

from secagg.protocol import ClientPolicy, Phase, Registry, RoundParams
from secagg.protocol.identities import SIGNATURE_BYTES, signed_survivors
from secagg.protocol.messages import ConsistencyRequest, UnmaskRequest, unpack_ids
from secagg.protocol.phases import check_size, refuse

__all__ = ["check_agreement", "check_survivors"]


def check_survivors(
    request: ConsistencyRequest,
    u2: Collection[int],
    params: RoundParams,
    policy: ClientPolicy,
    me: int,
) -> None:
    """Check the U3 a client is asked to sign.

    Parameters
    ----------
    request : ConsistencyRequest
    u2 : ids
        The clients whose shares this client holds, itself included.
    params, policy, me
        The client's own.

    Raises
    ------
    RemoteProtocolError
        Names the check that failed.
    """
    phase = Phase.CONSISTENCY_CHECK
    survivors = unpack_ids(request.survivors)
    if survivors is None:
        refuse(phase, "ids", "the ids are not strictly ascending")
    if not set(u2).issuperset(survivors):
        refuse(phase, "unknown id", "a client is named that never shared its keys")
    if me not in survivors:
        refuse(phase, "self", "this client sent its input and is not among the survivors")
    check_size(phase, len(survivors), params, policy)


def check_agreement(
    request: UnmaskRequest,
    agreed: bytes | None,
    session: bytes,
    params: RoundParams,
    policy: ClientPolicy,
    registry: Registry | None,
) -> None:
    """Check that enough clients signed the survivors of an unmask request.

    Parameters
    ----------
    request : UnmaskRequest
        Past the checks of the semi-honest variant.
    agreed : bytes or None
        U3 as this client signed it, packed; None in the semi-honest variant, where nobody
        signs.
    session : bytes
    params, policy, registry
        The client's own.

    Raises
    ------
    RemoteProtocolError
        Names the check that failed.
    """
    phase = Phase.UNMASKING
    if agreed is None or registry is None:
        if request.signers or request.signatures:
            refuse(phase, "length", "signatures, where nobody was to sign")
        return
    if request.survivors != agreed:
        refuse(phase, "consistency", "these are not the survivors this client signed")
    signers = unpack_ids(request.signers)
    if signers is None:
        refuse(phase, "ids", "the signers' ids are not strictly ascending")
    survivors = unpack_ids(agreed)
    if survivors is None or not set(survivors).issuperset(signers):
        refuse(phase, "unknown id", "a signer is not among the survivors")
    if len(request.signatures) != SIGNATURE_BYTES * len(signers):
        refuse(phase, "length", f"not one signature for each of {len(signers)} signers")
    check_size(phase, len(signers), params, policy)
    for i, v in enumerate(signers):
        signature = request.signatures[SIGNATURE_BYTES * i : SIGNATURE_BYTES * (i + 1)]
        if not registry.verifies(v, signed_survivors(session, v, agreed), signature):
            refuse(phase, "signature", f"client {v} did not sign these survivors")
