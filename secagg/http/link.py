"""Members of a session over HTTP: `join`, and the link below `join`."""

from __future__ import annotations

import ssl
from urllib.parse import quote

from secagg._check import check_kind
from secagg._secrets import without_frames
from secagg.encoding import Encoding
from secagg.errors import LinkError, RemoteProtocolError
from secagg.http.connection import Connection
from secagg.http.faults import problem_of, refused
from secagg.oneshot import OneShotPolicy
from secagg.privacy import PrivacyLedger
from secagg.protocol import ClientPolicy, CohortLedger, Identity, Registry
from secagg.protocol.client_ids import ClientKey, identify
from secagg.session import Completed, take_part
from secagg.session.training import Train

_LARGEST_TASK = 1 << 30
"""Bytes of a task, whole in memory. The application's message has no other bound."""
_REJECTED = (403, 409, 413, 422)
"""Statuses of an answer that fails a check; the member stays in the session."""


class HttpLink:
    """Link of a member to a session over HTTP; see `secagg.session.Link`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._path = ""

    async def next_task(self, after: bytes) -> bytes | None:
        """Wait for the next task; see `secagg.session.Link.next_task`."""
        path = f"{await self._session()}/task?after={after.hex()}"
        request, limit = self._connection.request, _LARGEST_TASK
        while (found := await request("GET", path, limit=limit)).status_code == 204:
            pass
        if found.status_code == 410:
            return None
        if found.status_code != 200:
            raise refused(found)
        return found.content

    async def send(self, answer: bytes) -> None:
        """Send an answer; see `secagg.session.Link.send`."""
        path = f"{await self._session()}/answer"
        found = await self._connection.request("POST", path, answer)
        # a program between would reject the next answer, too
        if found.status_code in _REJECTED and (problem := problem_of(found)) is not None:
            check, detail = problem
            raise RemoteProtocolError(detail, sender=None, phase="answer", check=check)
        if found.status_code not in (204, 410):  # the next poll sees the end of the session
            raise refused(found)

    async def _session(self) -> str:
        """Return the path of the session; the server has the session's name."""
        if not self._path:
            found = await self._connection.request("GET", "/v1/session")
            # another service of secagg answers 404, a program between anything else
            if found.status_code != 200 and (found.status_code != 404 or not problem_of(found)):
                raise refused(found)
            # quote raises a ValueError for a lone surrogate, and a TypeError for a number
            try:
                name = quote(found.json()["session"], safe="")
            except (ValueError, KeyError, TypeError, RecursionError):
                raise LinkError(
                    f"{self._connection.url} answered GET /v1/session without the name of a "
                    "session of secagg; check host and port of the URL",
                    check="session",
                ) from None
            self._path = f"/v1/sessions/{name}"
        return self._path


@without_frames
async def join(
    url: str,
    client_id: ClientKey,
    train: Train,
    *,
    identity: Identity,
    policy: ClientPolicy | None = None,
    registry: Registry | None = None,
    ledger: CohortLedger | None = None,
    spending: PrivacyLedger | None = None,
    one_shot_policy: OneShotPolicy | None = None,
    encoding: Encoding | None = None,
    tls: ssl.SSLContext | None = None,
    allow_plain_http: bool = False,
    patience: float = 600.0,
) -> Completed:
    """Take part in all rounds until a session over HTTP ends; return the completed rounds.

    `secagg.session.take_part` states which rounds count.

    Parameters
    ----------
    url : str
        Base URL of the server, such as "https://host:8443".
    client_id : int or str
    train : callable
        See `secagg.session.take_part`.
    identity : Identity
        Key that signs every request; the server's registry has the public key.
    policy, ledger, spending, one_shot_policy, encoding
        See `secagg.session.take_part`.
    registry : Registry, optional
        Public keys of all members, for rounds and sums with ``security="active"``.
    tls : ssl.SSLContext, optional
        Trusted authorities. None: the system's authorities.
    allow_plain_http : bool
        Accept a URL without TLS that is not on loopback.
    patience : float
        Seconds without an answer of the server, > 0, after which `LinkError` is raised. Within
        this time a server that restarts finds this member again. A request that the server has
        taken may last 30 seconds longer, and a second for each 64 KiB that were moved.

    Raises
    ------
    LinkError
        The server refuses this member, e.g. "signature" if the server lacks the member's key.
        Or the server does not answer ("patience"), TLS fails ("tls"), or the server sends more
        than 1 GiB ("size"). Or a program on the way answers: "redirect", "proxy", "type",
        "status". The message has the remedy.
    ParameterError, RemoteProtocolError
        See `secagg.session.take_part`. Or the URL has no TLS.
    Exception
        An error of `train`.
    """
    check_kind("identity", identity, Identity, "a secagg.Identity")
    async with Connection(
        url,
        identify(client_id)[0],
        identity,
        tls=tls,
        allow_plain_http=allow_plain_http,
        patience=patience,
    ) as connection:
        return await take_part(
            HttpLink(connection),
            client_id,
            train,
            policy=policy,
            identity=None if registry is None else identity,  # semi-honest rounds sign nothing
            registry=registry,
            ledger=ledger,
            spending=spending,
            one_shot_policy=one_shot_policy,
            encoding=encoding,
        )
