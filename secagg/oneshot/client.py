"""Client for one-shot sums, with one message and no state."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial

import numpy as np

from secagg._check import check_kind
from secagg._hedging import Hedged
from secagg._secrets import without_frames
from secagg.client.masked_input import Input
from secagg.client.spending import Spending, check_spending, spend
from secagg.encoding import Entropy, Vector
from secagg.encoding.clipping import is_lost, warn_of_losses
from secagg.errors import ParameterError
from secagg.oneshot import messages, seeds, suites
from secagg.oneshot.messages import Kind
from secagg.oneshot.params import OneShotParams
from secagg.oneshot.policy import OneShotPolicy
from secagg.protocol import Identity
from secagg.protocol.client_ids import ClientKey, identify
from secagg.protocol.identities import hedging_secret
from secagg.protocol.masks import MaskSum, filled


@without_frames
def report(
    vector: Vector,
    params: OneShotParams,
    client_id: ClientKey,
    weight: int | None = None,
    *,
    identity: Identity | None = None,
    policy: OneShotPolicy | None = None,
    endorsements: Iterable[bytes] = (),
    spending: Spending[OneShotParams] | None = None,
    entropy: Entropy = os.urandom,
) -> bytes:
    """Return a client's report, the only message. Send the report, unchanged, until it arrives.

    A second report of the client in the same session is never summed beside the first. A
    `ClippingWarning` has the number of clipped elements, if there are any.

    Parameters
    ----------
    vector : array, shape (d,)
        Vector in the units of ``params.encoding``.
    params : OneShotParams
    client_id : int or str
        Id of the client, 0 ≤ id < 2^64, unique in the session; or the client's name.
    weight : int, optional
        Weight of the vector, 0 to ``params.max_weight``; only in a weighted sum.
    identity : Identity, optional
        Signing key; the helpers have the public key in their registry. Required if security is
        "active".
    policy : OneShotPolicy, optional
        Demands on the parameters; the defaults of `OneShotPolicy` if None.
    endorsements : iterable of bytes, optional
        Endorsements of the parameters by all helpers, 64 bytes each and in the helpers' order,
        if the policy has `helpers`; else none.
    spending : Spending, optional
        Account of this client's privacy, such as a `secagg.privacy.PrivacyLedger`, for all
        sums of the same data. Each call spends, before the report exists outside of the call;
        the same report may be sent again.
    entropy : callable
        Source of secret random bytes: 32 for the seeds, then the encoding's bytes. HPKE draws
        from another source.

    Raises
    ------
    ParameterError
        An argument is invalid or the parameters fail the policy.
    BudgetSpent
        `spending` has no room for this sum, or the sum has no noise; a ParameterError.
    MissingExtra
        The installed cryptography lacks ``params.suite``.
    """
    check_spending(spending)
    made, clipped = write_report(
        vector, params, client_id, weight, identity, policy, endorsements, entropy
    )
    warn_of_losses(params.encoding, clipped, vector.size, is_lost(vector, params.encoding))
    if spending is not None:  # last of all that can fail
        spend(spending, params)
    return made


def write_report(
    vector: Vector,
    params: OneShotParams,
    client_id: ClientKey,
    weight: int | None = None,
    identity: Identity | None = None,
    policy: OneShotPolicy | None = None,
    endorsements: Iterable[bytes] = (),
    entropy: Entropy = os.urandom,
) -> tuple[bytes, int]:
    """Return a report, and the number of clipped elements, which `report` leaves out."""
    check_kind("params", params, OneShotParams, "a secagg.oneshot.OneShotParams")
    number, _ = identify(client_id)
    policy = OneShotPolicy() if policy is None else policy
    check_kind("policy", policy, OneShotPolicy, "a secagg.oneshot.OneShotPolicy")
    # before anything secret is drawn or encoded, so the verdict depends on no private number
    policy.check(params, endorsements)
    check_signer(params, identity)
    size, count = seeds.SEED_BYTES, params.seeds
    # hedged: if entropy repeats, other sessions and other clients still get other seeds
    statement = b"secagg/1 one-shot seeds" + params.digest + number.to_bytes(8, "little")
    drawn = Hedged(entropy, hedging_secret(identity), statement)(size * count)
    given = Input(vector, weight, params, entropy)

    own = {i: drawn[size * (i - 1) : size * i] for i in range(1, count + 1)}
    masks = MaskSum()
    rows = np.frombuffer(drawn, np.uint8).reshape(count, size)
    # every mask is added; the helpers' sums, not another client's mask, take the masks away
    found = seeds.mask_keys(rows, params.digest, ((number, i) for i in own))
    masks.add(found, negate=np.zeros(count, bool))

    commitments = (seeds.commitment(seed, params.digest, number, i) for i, seed in own.items())
    content = number.to_bytes(8, "little") + b"".join(commitments)
    head = messages.read_head(content, params)
    boxes = [
        suites.seal(
            params.suite,
            key,
            b"".join(own[i] for i in params.held_by(j)),
            messages.box_info(head, j),
        )
        for j, (key, _) in enumerate(params.helpers, 1)
    ]
    # not over the masked vector: a hash of it would let t helpers test guesses of the input
    signature = b"" if identity is None else identity.sign(head.content)
    parts = (messages.start(Kind.REPORT, params), content, *boxes, signature)
    return filled(parts, params.layout.packed, partial(given.write, masks=masks))


def check_signer(params: OneShotParams, identity: Identity | None) -> None:
    """Raise `ParameterError` unless a client has an identity exactly if `params` are active."""
    if identity is None:
        if params.active:
            raise ParameterError("security 'active' needs identity=secagg.Identity(seed)")
        return
    check_kind("identity", identity, Identity, "a secagg.Identity")
    if not params.active:
        raise ParameterError(
            f"an identity was given, but security {params.security!r} has no signatures; leave "
            "the identity out, or take security='active'"
        )
