"""Links of an aggregator to helpers for one-shot sums over HTTPS."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import httpx

from secagg._check import check_kind
from secagg.errors import LinkError, RemoteProtocolError
from secagg.http.address import client_context
from secagg.http.connection import Connection
from secagg.http.faults import problem_of, refused
from secagg.http.helper import AGGREGATOR
from secagg.oneshot import OneShotParams, replies
from secagg.oneshot.helper_files import HelperEntry
from secagg.oneshot.messages import Kind
from secagg.oneshot.policy import endorsement
from secagg.protocol import Identity
from secagg.protocol.identities import SIGNATURE_BYTES

logger = logging.getLogger("secagg.http")

_EMPTY_LIST = 64
"""More than the bytes of an answer that lists no client."""


class HttpHelper:
    """Helper for one-shot sums over HTTP; see `secagg.session.HelperLink`.

    Attributes
    ----------
    number : int
        Number of the helper, from 1 on.
    endorsement : bytes
        The helper's signature of the parameters, 64 bytes.
    """

    number: int
    endorsement: bytes

    def __init__(self, connection: Connection, params: OneShotParams) -> None:
        self._connection, self._params = connection, params
        self._path = f"/v1/sums/{params.digest.hex()}"
        self._numbers = tuple(params.identities)

    async def begin(self) -> None:
        """Send the parameters, and find the helper's number by the helper's signature.

        Raises
        ------
        RemoteProtocolError
            "signature": the other side is no helper of these parameters. Or a check that the
            helper made.
        """
        body = self._params.to_bytes()
        request, limit = self._connection.request, SIGNATURE_BYTES
        found = _accepted(await request("POST", "/v1/sums", body, limit=limit), "begin")
        self.endorsement, statement = found.content, endorsement(self._params)
        # the helper states no number: only the key that verifies shows the helper's place
        for number in self._numbers:
            if self._params.identities.verifies(number, statement, self.endorsement):
                self.number, self._numbers = number, (number,)
                return
        raise _wrong("begin", "signature", "its signature is no helper's of these parameters")

    async def check(self, boxes: bytes) -> tuple[int, ...]:
        """Return the rejected clients of a chunk; see `secagg.oneshot.Helper.check`."""
        # in JSON an id takes fewer bytes than the client's record in the chunk
        found = await self._call("check", boxes, _EMPTY_LIST + len(boxes))
        try:
            return tuple(int(u) for u in found.json()["rejected"])
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise _wrong("check", "encoding", "its answer is no list of clients") from None

    async def reserve(self, request: bytes) -> bytes:
        """Return a reservation; see `secagg.oneshot.Helper.reserve`."""
        limit = replies.size(Kind.RESERVATION, self._params, self.number)
        return (await self._call("reserve", request, limit)).content

    async def open(self, request: bytes) -> bytes:
        """Return an answer; see `secagg.oneshot.Helper.open`."""
        limit = replies.size(Kind.ANSWER, self._params, self.number)
        return (await self._call("open", request, limit)).content

    async def _call(self, step: str, body: bytes, limit: int) -> httpx.Response:
        path = f"{self._path}/{step}"
        found = await self._connection.request("POST", path, body, limit=limit)
        # a restarted helper has forgotten the parameters, but not its journal
        if found.status_code == 404 and problem_of(found):
            await self.begin()
            found = await self._connection.request("POST", path, body, limit=limit)
        return _accepted(found, step)


@asynccontextmanager
async def reach_helper(
    url: str,
    params: OneShotParams,
    *,
    identity: Identity,
    tls: ssl.SSLContext | None = None,
    allow_plain_http: bool = False,
    patience: float = 10.0,
) -> AsyncIterator[HttpHelper]:
    """Yield a link to a helper, for `secagg.session.Session.one_shot`.

    Parameters
    ----------
    url : str
        Base URL of the helper, such as "https://host:8444".
    params : OneShotParams
        Parameters of the sum; the helper judges and endorses them.
    identity : Identity
        Key of the aggregator; the helper knows the public key.
    tls, allow_plain_http
        See `join`.
    patience : float
        Seconds without an answer, > 0, after which the helper counts as missing. A request that
        the helper has taken may last 30 seconds longer, and a second for each 64 KiB that were
        moved.

    Raises
    ------
    LinkError
        The helper cannot be reached, refuses this aggregator, or sends too much ("size"). Or a
        program on the way answers; see `join`.
    RemoteProtocolError
        The other side is no helper of these parameters, or rejects the parameters.
    ParameterError
        An argument is invalid.
    """
    check_kind("params", params, OneShotParams, "a secagg.oneshot.OneShotParams")
    check_kind("identity", identity, Identity, "a secagg.Identity")
    async with Connection(
        url, AGGREGATOR, identity, tls=tls, allow_plain_http=allow_plain_http, patience=patience
    ) as connection:
        link = HttpHelper(connection, params)
        try:
            await link.begin()
        except LinkError as error:
            if error.check != "signature":
                raise
            raise LinkError(
                f"the helper at {url} has another aggregator; its operator runs secagg helper "
                f"serve --aggregator {identity.public.hex()}",
                check=error.check,
            ) from None
        yield link


@asynccontextmanager
async def reach_helpers(
    helpers: Sequence[HelperEntry],
    params: OneShotParams,
    *,
    identity: Identity,
    authority: Path | str | None,
    patience: float,
    allow_plain_http: bool = False,
    needed: bool = True,
) -> AsyncIterator[list[HttpHelper]]:
    """Yield links to the helpers, by number, after each helper endorsed the parameters.

    Parameters
    ----------
    helpers : sequence of HelperEntry
    params : OneShotParams
    identity : Identity
        Key of the aggregator.
    authority : str or path or None
        File with the certificate authority of the helpers; None: the system's authorities.
    patience : float
        Seconds for a helper's answer, > 0.
    allow_plain_http : bool
        See `secagg.http.join`.
    needed : bool
        False: leave out helpers that do not answer, with a warning in the log.

    Raises
    ------
    LinkError
        A helper that is needed does not answer or endorses nothing. Clients ask for the
        endorsements of all: the server could have invented the others' keys. The caller's
        parameters are given, so no helper can be left out of them, as
        `secagg.flower.helpers.endorsed` does.
    """
    links: dict[int, HttpHelper] = {}
    async with AsyncExitStack() as stack:
        for one in helpers:
            reached = reach_helper(
                one.url,
                params,
                identity=identity,
                tls=client_context(authority) if one.url.startswith("https:") else None,
                allow_plain_http=allow_plain_http,
                patience=patience,
            )
            try:
                link = await stack.enter_async_context(reached)
                # addresses may be interchanged, but a liar could pass all requests on to
                # another helper, who would be there twice: then the helper's own address counts
                own = params.identities[link.number] == one.ed25519
                if link.number in links and not own:
                    raise _wrong("begin", "signature", "it answers for another helper")
                links[link.number] = link
            except (LinkError, RemoteProtocolError) as error:
                if not needed:
                    logger.warning("going on without the helper at %s: %s", one.url, error)
                    continue
                away = error.check == "patience"
                remedy = "start it with secagg helper serve, then try again: " if away else ""
                raise LinkError(
                    f"the helper at {one.url} does not endorse this sum, and clients ask for "
                    f"the endorsements of all {len(helpers)}; {remedy}{error}",
                    check=error.check,
                ) from None
        # clients verify the endorsements in the order of the parameters
        yield [links[number] for number in sorted(links)]


def _accepted(response: httpx.Response, phase: str) -> httpx.Response:
    if response.status_code == 422 and (problem := problem_of(response)) is not None:
        raise _wrong(phase, *problem)
    if response.status_code != 200:
        raise refused(response)
    return response


def _wrong(phase: str, check: str, why: str) -> RemoteProtocolError:
    return RemoteProtocolError(why, sender=None, phase=phase, check=check)
