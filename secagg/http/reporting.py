"""Report of a client to a collection over HTTP: one message, and the client may leave."""

from __future__ import annotations

import ssl

import msgspec

from secagg._check import check_kind
from secagg._secrets import without_frames
from secagg.client.inputs import Outcome, send_input
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

PARAMETERS = "/v1/parameters"
"""Path of the newest parameters; below are parameters by digest, and their reports."""


class Offer(msgspec.Struct):
    """Parameters and endorsements that a collection offers; bytes are in base64."""

    parameters: bytes
    endorsements: list[bytes]


def reports_path(params: OneShotParams) -> str:
    """Return the path that takes the reports under some parameters."""
    return f"{PARAMETERS}/{params.digest.hex()}/reports"


@without_frames
async def send_report(
    url: str,
    vector: Vector,
    client_id: ClientKey,
    weight: int | None = None,
    *,
    policy: OneShotPolicy,
    identity: Identity | None = None,
    encoding: Encoding | None = None,
    tls: ssl.SSLContext | None = None,
    allow_plain_http: bool = False,
    patience: float = 600.0,
) -> OneShotParams:
    """Send one report to a collection, and return the parameters of the sum.

    The report is stored when the call returns. The call sends the same bytes until the
    collection acknowledges them. Whether the client reports does not depend on its numbers: a
    weight above ``max_weight`` is lowered, and zeros replace a vector that cannot be summed.

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
    encoding : Encoding, optional
        See `OneShotParams.from_bytes`.
    tls, allow_plain_http, patience
        See `join`.

    Raises
    ------
    LinkError
        "id": another report of this client was accepted before. "closed": the session takes no
        more reports. Or the collection cannot be reached; see `join`.
    ParameterError
        An argument is invalid, or the parameters fail the policy or do not fit the identity.
        For an invalid vector or weight, after zeros were stored in the client's name.
    RemoteProtocolError
        The parameters are malformed, or the collection rejects the report.
    """
    check_kind("policy", policy, OneShotPolicy, "a secagg.oneshot.OneShotPolicy")
    if policy.helpers is None or policy.bounds is None:
        raise ParameterError(
            "the parameters come from the collection, and the policy lacks helpers or bounds; "
            "pass OneShotPolicy(helpers={the Ed25519 key of each}, bounds=secagg.Bounds(…))"
        )
    async with Connection(
        url,
        identify(client_id)[0],
        None,
        tls=tls,
        allow_plain_http=allow_plain_http,
        patience=patience,
    ) as connection:
        offer = await _offer(connection)
        params = OneShotParams.from_bytes(offer.parameters, encoding)

        def write(vector: Vector, weight: int | None, _: bool) -> tuple[bytes, int]:
            trust = identity, policy, offer.endorsements
            return write_report(vector, params, client_id, weight, *trust)

        # first: zeros of a length that the policy rejects could fill the memory
        policy.check(params, offer.endorsements)
        check_signer(params, identity)
        outcome = Outcome(vector, weight)
        (content, clipped), sent = await in_thread(lambda: send_input(write, outcome, params))
        found = await connection.request("POST", reports_path(params), content)
        if found.status_code == 422 and (problem := problem_of(found)) is not None:
            check, detail = problem
            raise RemoteProtocolError(detail, sender=None, phase="report", check=check)
        if found.status_code != 204:
            raise refused(found)
    # only now: whether a client reports must not depend on its numbers
    lost = note(identify(client_id)[0], outcome, sent, clipped, params)
    if lost is not None:
        raise lost
    return params


async def _offer(connection: Connection) -> Offer:
    found = await connection.request("GET", PARAMETERS)
    if found.status_code != 200:
        raise refused(found)
    try:
        return msgspec.json.decode(found.content, type=Offer)
    except (msgspec.MsgspecError, RecursionError):
        raise LinkError(
            f"{connection.url} answered GET {PARAMETERS} without parameters of a collection; "
            "check host and port of the URL",
            check="parameters",
        ) from None
