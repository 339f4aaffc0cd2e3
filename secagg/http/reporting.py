"""Report of a client to a collection over HTTP: one message, and the client may leave."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
import numpy as np

from secagg._check import check_kind
from secagg._secrets import without_frames
from secagg.client.inputs import Outcome, send_input
from secagg.client.spending import Spending, check_allowed, check_spending, spend
from secagg.encoding import Encoding, Vector
from secagg.errors import LinkError, ParameterError, RemoteProtocolError
from secagg.http.connection import Connection
from secagg.http.faults import problem_of, refused
from secagg.oneshot import OneShotParams, OneShotPolicy
from secagg.oneshot.client import check_signer, write_report
from secagg.protocol import Identity
from secagg.protocol.client_ids import ClientKey, identify
from secagg.session.exchange import in_thread
from secagg.session.training import note
from secagg.session.wire import is_bound

PARAMETERS = "/v1/parameters"
"""Path of the newest parameters; below are parameters by digest, and their reports."""


_MOST = 1 << 24
"""Bytes of an answer with an offer, with the message in base64."""


class _Answer(msgspec.Struct):
    """Answer of a collection, with bytes in base64."""

    parameters: bytes
    endorsements: list[bytes]
    message: bytes = b""


@dataclass(frozen=True, eq=False)
class Offer:
    """Parameters of a session that passed a client's policy; see `get_offer`.

    Attributes
    ----------
    params : OneShotParams
    endorsements : tuple of bytes
        Signatures of all helpers, in order.
    message : bytes
        Message of the application to all clients, such as a model; b"" for none. The helpers'
        signatures cover the message, so all clients of a sum have the same.
    """

    params: OneShotParams
    endorsements: tuple[bytes, ...]
    message: bytes


def reports_path(params: OneShotParams) -> str:
    """Return the path that takes the reports under some parameters."""
    return f"{PARAMETERS}/{params.digest.hex()}/reports"


async def get_offer(
    url: str,
    *,
    policy: OneShotPolicy,
    digest: bytes | None = None,
    encoding: Encoding | None = None,
    tls: ssl.SSLContext | None = None,
    allow_plain_http: bool = False,
    patience: float = 600.0,
) -> Offer:
    """Return what a collection offers: the newest parameters that take reports.

    Parameters
    ----------
    url, policy, encoding, tls, allow_plain_http, patience
        See `send_report`.
    digest : bytes, optional
        ``OneShotParams.digest`` of the wanted parameters, to try again after an error. Under
        other parameters the same vector could be in two sums, whose difference can show it.

    Raises
    ------
    LinkError
        The collection cannot be reached, or no session takes reports; see `join`. With a
        digest, the error does not allow other parameters: the collection chooses its answers.
    ParameterError
        An argument is invalid, or the parameters fail the policy.
    RemoteProtocolError
        The parameters are malformed, or not the wanted parameters. "message": they are of
        another message, or of none; the collection's operator names the message by
        `secagg.session.bind`, also b"".
    """
    _check_policy(policy)
    async with Connection(
        url, 0, None, tls=tls, allow_plain_http=allow_plain_http, patience=patience
    ) as connection:
        if digest is None:
            return await _offer(connection, policy, encoding, None, bound=True)
        with naming(digest):
            found = await _offer(connection, policy, encoding, digest, bound=True)
            if found.params.digest != digest:
                raise _wrong("parameters", "the parameters are not the wanted parameters")
            return found


@without_frames
async def send_report(
    url: str,
    vector: Vector,
    client_id: ClientKey,
    weight: int | None = None,
    *,
    policy: OneShotPolicy,
    identity: Identity | None = None,
    spending: Spending[OneShotParams] | None = None,
    offer: Offer | None = None,
    encoding: Encoding | None = None,
    tls: ssl.SSLContext | None = None,
    allow_plain_http: bool = False,
    patience: float = 600.0,
) -> OneShotParams:
    """Send one report to a collection, and return the parameters of the sum.

    The report is stored when the call returns. The call sends the same bytes until the
    collection acknowledges them. Whether the client reports does not depend on its numbers: a
    weight above ``max_weight`` is lowered, and zeros replace a vector that cannot be summed.

    After an error the report may be stored, whatever the collection answered. So report the
    vector under the same parameters only: pass the same `offer` again, or an offer of
    `get_offer` with the `digest` that the error names. Nothing is counted twice.

    Parameters
    ----------
    url : str
        Base URL of the collection, such as "https://host:8443".
    vector, client_id, weight
        See `secagg.oneshot.report`.
    policy : OneShotPolicy
        Demands on the parameters, which come from the collection. The policy must have
        `helpers`, and `bounds`, since a client that leaves remembers no earlier bounds.
    identity : Identity, optional
        Signing key. A client with a key reports in sums with ``security="active"`` only.
    spending : Spending, optional
        Account of this client's privacy, such as a `secagg.privacy.PrivacyLedger`, for all
        sums of the same data. Each call spends once, before the report is sent. Another call
        makes another report, and spends again, also under the same parameters.
    offer : Offer, optional
        Parameters that `get_offer` returned before, for instance with the model on which the
        client trained since. None: the newest parameters.
    encoding : Encoding, optional
        See `OneShotParams.from_bytes`.
    tls, allow_plain_http, patience
        See `join`.

    Raises
    ------
    LinkError
        "id": another report of this client was accepted before. "closed": the session takes no
        more reports. Or the collection cannot be reached; see `join`. Each is the collection's
        word only.
    ParameterError
        An argument is invalid, or the parameters fail the policy or do not fit the identity.
        For an invalid vector or weight, after zeros were stored in the client's name; for a
        vector that is no array, before anything is sent.
    BudgetSpent
        `spending` has no room for this sum, or the sum has no noise; a ParameterError. No
        report was sent.
    JournalError
        The file of `spending` cannot be read or written. No report was sent.
    RemoteProtocolError
        The parameters are malformed, or the collection rejects the report.
    """
    _check_policy(policy)
    # a mistake in the program, which no number decides: zeros would end the client's only try
    check_kind("vector", vector, np.ndarray, "a 1-d numpy array, numpy.array([…])")
    check_kind("offer", offer, (Offer, type(None)), "a secagg.http.Offer")
    check_spending(spending)
    async with Connection(
        url,
        identify(client_id)[0],
        None,
        tls=tls,
        allow_plain_http=allow_plain_http,
        patience=patience,
    ) as connection:
        if offer is None:
            # nobody reads the message, so the operator need not name an empty message
            offer = await _offer(connection, policy, encoding, None, bound=False)
        params, endorsements = offer.params, offer.endorsements

        def write(vector: Vector, weight: int | None, _: bool) -> tuple[bytes, int]:
            trust = identity, policy, endorsements
            return write_report(vector, params, client_id, weight, *trust)

        # first: zeros of a length that the policy rejects could fill the memory
        policy.check(params, endorsements)
        check_signer(params, identity)
        if (account := spending) is not None:  # before the vector is read
            await in_thread(lambda: check_allowed(account, params))
        outcome = Outcome(vector, weight)
        (content, clipped), sent = await in_thread(lambda: send_input(write, outcome, params))
        if account is not None:  # once, also for zeros, and for all copies of these bytes
            await in_thread(lambda: spend(account, params))
        with naming(params.digest):
            found = await connection.request("POST", reports_path(params), content)
            if found.status_code == 422 and (problem := problem_of(found)) is not None:
                raise _wrong(*problem)
            if found.status_code != 204:
                raise refused(found)
    # only now: whether a client reports must not depend on its numbers
    lost = note(identify(client_id)[0], outcome, sent, clipped, params)
    if isinstance(lost, ParameterError):
        raise zeros_stored(lost, params.digest)
    if lost is not None:
        raise lost
    return params


@contextmanager
def naming(digest: bytes) -> Iterator[None]:
    """Name the parameters of a report in errors, since the report may be stored.

    A collection that lies stores the report and answers with any error. Under other parameters
    the same vector would be in two sums.
    """
    try:
        yield
    except (LinkError, RemoteProtocolError) as error:
        # last, after all words of the collection; an inner block may have named them before
        if not str(error).endswith(stored := may_be_stored(digest)):
            error.args = (f"{error}; {stored}",)
        raise


def may_be_stored(digest: bytes) -> str:
    """Return what to do after a report that the collection has not acknowledged, in words."""
    return (
        "the report may be stored: send this vector under no other parameters than "
        f"digest={digest.hex()}"
    )


def zeros_stored(error: object, digest: bytes) -> ParameterError:
    """Return the error of a vector in whose place zeros are stored."""
    return ParameterError(f"{error}; zeros are stored in its place under {digest.hex()}")


def _check_policy(policy: OneShotPolicy) -> None:
    check_kind("policy", policy, OneShotPolicy, "a secagg.oneshot.OneShotPolicy")
    if policy.helpers is None or policy.bounds is None:
        raise ParameterError(
            "the parameters come from the collection, and the policy lacks helpers or bounds; "
            "pass OneShotPolicy(helpers={the Ed25519 key of each}, bounds=secagg.Bounds(…))"
        )


async def _offer(
    connection: Connection,
    policy: OneShotPolicy,
    encoding: Encoding | None,
    digest: bytes | None,
    *,
    bound: bool,
) -> Offer:
    path = PARAMETERS if digest is None else f"{PARAMETERS}/{digest.hex()}"
    found = await connection.request("GET", path, limit=_MOST)
    if found.status_code != 200:
        raise refused(found)
    try:
        answer = msgspec.json.decode(found.content, type=_Answer)
    except (msgspec.MsgspecError, RecursionError):
        raise LinkError(
            f"{connection.url} answered GET {PARAMETERS} without parameters of a collection; "
            "check host and port of the URL",
            check="parameters",
        ) from None
    params = OneShotParams.from_bytes(answer.parameters, encoding)
    policy.check(params, answer.endorsements)
    # also an empty message: a client from whom the collection keeps a model trains on another
    if (bound or answer.message) and not is_bound(params, answer.message):
        raise _wrong("message", "the parameters are of another message")
    return Offer(params, tuple(answer.endorsements), answer.message)


def _wrong(check: str, why: str) -> RemoteProtocolError:
    return RemoteProtocolError(why, sender=None, phase="report", check=check)
