"""Judge of verdicts (docs/protocol.md, §14): bytes of anybody, a registry and a policy.

A leaf under a root that a dealer signed is the dealer's word. An honest dealer's shares lie on
a polynomial with the published secret, and the boxes open. An honest holder accepts a leaf only
with shares of these hashes, and reveals these shares. So t shares of another secret, an answer
with another hash, and complaints of more holders than collude convict. The session follows from
the parameters in the verdict: t shares with the t of another round give another secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from secagg._check import as_bytes, check_kind
from secagg.blame import layout
from secagg.blame.case import ITEM_BYTES, Case
from secagg.blame.layout import Openings, Parts, unproven
from secagg.encoding import Encoding
from secagg.errors import RemoteProtocolError
from secagg.protocol import ClientPolicy, Registry, RoundParams, dealing, keys, pair_masks
from secagg.protocol.identities import SIGNATURE_BYTES


def check(
    data: bytes,
    registry: Registry,
    policy: ClientPolicy | None = None,
    encoding: Encoding | None = None,
) -> int:
    """Return the client that a verdict convicts.

    Count a client once for each session, since a fault has several verdicts.

    Parameters
    ----------
    data : bytes
        ``Verdict.data``, or any bytes.
    registry : Registry
        The registry of the round, among whose clients some collude.
    policy : ClientPolicy, optional
        Demands on the round, such as the clients have; None: the defaults. A dealer is
        convicted by complaints of more clients than collude.
    encoding : Encoding, optional
        The round's encoding, needed if no class of this package reads the bytes.

    Raises
    ------
    ParameterError
        An argument is of another type, or the policy rejects the round's parameters.
    RemoteProtocolError
        The bytes convict nobody. The phase is "verdict", and docs/protocol.md, §14, lists the
        checks.
    """
    data = as_bytes(data, "a verdict")
    check_kind("registry", registry, Registry, "a secagg.Registry({id: identity.public, …})")
    policy = ClientPolicy() if policy is None else policy
    check_kind("policy", policy, ClientPolicy, "a secagg.ClientPolicy")
    claim = layout.unpack(data)
    params = _params(claim.params, encoding)
    policy.check(params, len(registry))
    session = keys.session_id(params.digest, claim.roster)
    colluders = policy.colluders_of(params, len(registry))
    case = Case(params, session, registry, claim.client, colluders)
    parts = Parts(claim.parts, dealing.depth(params.n_clients))
    _RULES[claim.kind](case, parts)
    parts.end()
    return claim.client


def _params(data: bytes, encoding: Encoding | None) -> RoundParams:
    """Return the parameters of a round of the active variant, from bytes."""
    try:
        params = RoundParams.from_bytes(data, encoding)
    except RemoteProtocolError as error:
        raise unproven("parameters", str(error)) from None
    if not params.active:
        raise unproven("parameters", "only rounds of the active variant have verdicts")
    return params


def _shares(case: Case, parts: Parts) -> None:
    """Judge a dealer by t shares that do not give the published secret."""
    dealt = case.dealt(case.client, parts)
    (kind,) = parts.take(1)
    if kind not in (dealing.B_SHARE, dealing.S_SHARE):
        raise unproven("kind", f"there is no secret of the kind {kind}")
    _, published = case.secret(case.client, dealt, kind, parts)
    if published:
        raise unproven("innocent", f"the shares give what client {case.client} published")


def _answer(case: Case, parts: Parts) -> None:
    """Judge a holder by an answer with another hash than the accepted leaf."""
    dealer, holder = int.from_bytes(parts.take(layout.ID_BYTES), "little"), case.client
    if dealer == holder:  # by signing the root, a dealer accepts its own leaf
        root = case.dealt(dealer, parts).root
        parts.take(0)
        answers = case.answered(holder, parts)
        opened = Openings.of(parts.take_opened(layout.OPENED_BYTES))
        case.check_root(dealer, root, opened)
    else:
        listed = case.listed(holder, parts.take_items(ITEM_BYTES), parts.take(SIGNATURE_BYTES))
        answers = case.answered(holder, parts)
        opened = Openings.of(parts.take(layout.OPENED_BYTES))
        case.check_leaf(listed, dealer, opened, complaint=False)
    case.check_signer(opened, holder)
    answers = answers[answers["dealer"] == np.uint64(dealer)]
    accepted = np.split(opened.hashes[0], 2)
    for kind in dealing.B_SHARE, dealing.S_SHARE:
        if (answers["hash"][answers["kind"] == kind] != accepted[kind]).any():
            return
    raise unproven("innocent", f"client {holder} answered with the share that it accepted")


def _complaints(case: Case, parts: Parts) -> None:
    """Judge a dealer by complaints of more holders than collude."""
    dealer = case.client
    root = case.dealt(dealer, parts).root
    count, last = 0, -1
    while parts:
        listed, signature = parts.take_items(ITEM_BYTES), parts.take(SIGNATURE_BYTES)
        opened = Openings.of(parts.take_opened(layout.OPENED_BYTES))
        case.check_root(dealer, root, opened)
        holder = int(opened.holders[0])
        if holder <= last or holder == dealer:
            raise unproven("ids", "the complaining holders do not ascend, or are the dealer")
        items = case.listed(holder, listed, signature)
        case.check_leaf(items, dealer, opened, complaint=True)
        count, last = count + 1, holder
        if count > case.params.n_clients:
            raise unproven("length", "there are more complaints than clients in the round")
    if count <= case.colluders:
        why = f"{count} complaints prove nothing where {case.colluders} clients may collude"
        raise unproven("count", why)


def _contribution(case: Case, parts: Parts) -> None:
    """Judge a dealer by a check that p and q of the dealer's seed do not fit."""
    if case.params.suite != "hybrid":
        raise unproven("kind", "a round of suite x25519 has no contributions")
    dealer = case.client
    dealt = case.dealt(dealer, parts)
    seed, published = case.secret(dealer, dealt, dealing.S_SHARE, parts)
    if not published:
        raise unproven("kind", f"the shares do not give the seed of client {dealer}")
    opened = Openings.of(parts.take_opened(layout.OPENED_BYTES))
    case.check_root(dealer, dealt.root, opened)
    if int(opened.holders[0]) == dealer:
        raise unproven("ids", "the leaf is the dealer's own, which has no check")
    both = pair_masks.contributions(seed, case.session, dealer, opened.holders)
    expected = pair_masks.checks(case.session, dealer, opened.holders, both)
    if (opened.checks == expected).all():
        raise unproven("innocent", f"the check is the one of client {dealer}'s seed")


def _complainer(case: Case, parts: Parts) -> None:
    """Judge a holder by complaints of more dealers than may be at fault."""
    holder, params = case.client, case.params
    listed, signature = parts.take_items(ITEM_BYTES), parts.take(SIGNATURE_BYTES)
    items = case.listed(holder, listed, signature)
    dealers = items["dealer"][items["complaint"] != dealing.ACCEPTED].tolist()
    most = params.most_liars
    if len(dealers) <= most:
        raise unproven("count", f"{len(dealers)} complaints are not more than {most}")
    if holder in dealers:
        raise unproven("ids", f"client {holder} lists itself")
    for dealer in dealers:
        root = case.dealt(dealer, parts).root
        opened = Openings.of(parts.take_opened(layout.OPENED_BYTES))
        case.check_signer(opened, holder)
        case.check_leaf(items, dealer, opened, complaint=True)
        case.check_root(dealer, root, opened)


_RULES: Mapping[str, Callable[[Case, Parts], None]] = {
    layout.SHARES: _shares,
    layout.ANSWER: _answer,
    layout.COMPLAINTS: _complaints,
    layout.CONTRIBUTION: _contribution,
    layout.COMPLAINER: _complainer,
}
