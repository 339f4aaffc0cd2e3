"""Helpers of one-shot sums, and the links from the server of a run to the helpers."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol, Self, runtime_checkable

from secagg import Identity
from secagg._check import check_integer, check_kind
from secagg.errors import LinkError, ParameterError, RemoteProtocolError
from secagg.oneshot import OneShotParams
from secagg.oneshot.helper_files import helpers_from_json
from secagg.oneshot.params import MAX_HELPERS
from secagg.session import Clock, Event, HelperFailed, HelperLink, Place
from secagg.session.events import Hooks
from secagg.session.helpers import Helpers

logger = logging.getLogger("flwr.secagg")


class EndorsingLink(HelperLink, Protocol):
    """Connection to a helper that has endorsed the parameters of a sum.

    Attributes
    ----------
    endorsement : bytes
        The helper's signature of the parameters, 64 bytes.
    """

    endorsement: bytes


@runtime_checkable
class Reachable(Protocol):
    """Helper for `OneShot`: public keys, and a connection to the helper."""

    @property
    def public(self) -> tuple[bytes, bytes]:
        """HPKE key and Ed25519 key of the helper, ``HelperJournal.public``."""
        ...

    def reach(self, params: OneShotParams) -> AbstractAsyncContextManager[EndorsingLink]:
        """Return a link to the helper, for a sum of these parameters."""
        ...


class RemoteHelper:
    """Helper of one-shot sums that ``secagg helper serve`` serves.

    Parameters
    ----------
    url : str
        Base URL of the helper, such as "https://host:8444".
    public : (bytes, bytes)
        HPKE key and Ed25519 key of the helper.
    identity : Identity
        Key of the server. The helper knows the public key as the key of the aggregator.
    tls, allow_plain_http, patience
        See `secagg.http.reach_helper`.

    Raises
    ------
    ParameterError
        An argument is invalid.
    MissingExtra
        The extra ``http`` is not installed.
    """

    def __init__(
        self,
        url: str,
        public: tuple[bytes, bytes],
        *,
        identity: Identity,
        tls: ssl.SSLContext | None = None,
        allow_plain_http: bool = False,
        patience: float = 10.0,
    ) -> None:
        from secagg.http import reach_helper  # nodes do without the extra
        from secagg.http.address import check_url

        check_kind("identity", identity, Identity, "a secagg.Identity")
        self._url = check_url(url, allow_plain_http=allow_plain_http)
        self.public = public
        self._reach = partial(
            reach_helper,
            self._url,
            identity=identity,
            tls=tls,
            allow_plain_http=allow_plain_http,
            patience=patience,
        )

    def __repr__(self) -> str:
        return f"<RemoteHelper {self._url}>"

    def reach(self, params: OneShotParams) -> AbstractAsyncContextManager[EndorsingLink]:
        """Return a link to the helper, which has endorsed the parameters."""
        return self._reach(params)

    @classmethod
    def read(
        cls,
        path: Path | str,
        *,
        identity: Identity,
        tls: ssl.SSLContext | None = None,
        allow_plain_http: bool = False,
        patience: float = 10.0,
    ) -> list[Self]:
        """Return the helpers in a file of the form that ``secagg serve --helpers`` reads.

        Raises
        ------
        ParameterError
            The file cannot be read or has another form, or an argument is invalid.
        """
        try:
            entries = helpers_from_json(Path(path).read_bytes())
        except OSError as error:
            raise ParameterError(f"cannot read {path}: {error.strerror}") from None
        made = partial(
            cls,
            identity=identity,
            tls=tls,
            allow_plain_http=allow_plain_http,
            patience=patience,
        )
        return [made(one.url, (one.hpke, one.ed25519)) for one in entries]


def all_reachable(helpers: Iterable[Reachable]) -> tuple[Reachable, ...]:
    """Return helpers, two or more; raise `ParameterError` if an element is no helper."""
    remedy = 'as from RemoteHelper.read("helpers.json", identity=…)'
    check_kind("helpers", helpers, Iterable, f"a list of RemoteHelper, {remedy}")
    found = tuple(helpers)
    for position, helper in enumerate(found):
        check_kind(f"helpers[{position}]", helper, Reachable, f"a RemoteHelper, {remedy}")
    check_integer("the number of helpers", len(found), 2, MAX_HELPERS)
    return found


class Endorsed(NamedTuple):
    """Parameters of a sum, with all helpers of the parameters and their endorsements."""

    params: OneShotParams
    endorsements: list[bytes]
    helpers: Sequence[Reachable]


async def endorsed(
    helpers: Sequence[Reachable],
    params_of: Callable[[Sequence[Reachable]], OneShotParams],
    threshold: int,
    seconds: float,
    place: Place,
) -> Endorsed:
    """Return the parameters of a sum with the helpers that endorse these parameters.

    A helper that cannot be reached is left out of the parameters: nodes ask for the
    endorsements of all helpers. Nobody attends the rounds of a run, so an absent helper must
    not end the run. With given parameters the sum fails instead; see
    `secagg.http.helper_link.reach_helpers`.

    Parameters
    ----------
    helpers : sequence of Reachable
    params_of : callable
        Function that returns parameters with these helpers.
    threshold : int
    seconds : float
        Deadline of the helpers, > 0.
    place : Place
        Place of the sum.

    Raises
    ------
    RemoteProtocolError
        "helpers": fewer than `threshold` helpers endorse.
    ParameterError
        The parameters are impossible.
    """
    while True:
        params = params_of(helpers)
        async with AsyncExitStack() as stack:
            asked = reached(params, helpers, place, stack)
            found = await asked.ask("endorse", seconds, _endorse)
        if not asked.failed:
            return Endorsed(params, [found[j] for j in sorted(found)], helpers)
        asked.require(threshold, "endorse")
        # parameters name their helpers: a shorter list needs new endorsements from all
        helpers = [one for j, one in enumerate(helpers, 1) if j in found]


def reached(
    params: OneShotParams, helpers: Sequence[Reachable], place: Place, stack: AsyncExitStack
) -> Helpers:
    """Return the helpers of parameters for `Batch.finish`; `stack` closes the links."""

    def note(event: Event) -> None:
        if isinstance(event, HelperFailed):
            helper = helpers[event.helper - 1]
            logger.warning("secagg: %r is left out (%s: %s)", helper, event.phase, event.check)

    links = [_Line(j, helper, params, stack) for j, helper in enumerate(helpers, 1)]
    return Helpers(links, len(links), place, Hooks([note]), Clock())


async def _endorse(line: HelperLink) -> bytes:
    assert isinstance(line, _Line), "made by `reached`"  # noqa: S101
    return (await line.link()).endorsement


class _Line:
    """Link to a helper; the first call makes the link, under the deadline of that call."""

    def __init__(
        self, number: int, helper: Reachable, params: OneShotParams, stack: AsyncExitStack
    ) -> None:
        self.number = number
        self._helper, self._params, self._stack = helper, params, stack
        self._link: EndorsingLink | None = None

    async def link(self) -> EndorsingLink:
        if self._link is None:
            try:
                link = await self._stack.enter_async_context(self._helper.reach(self._params))
            except (LinkError, RemoteProtocolError) as error:  # the event has its check only
                logger.warning("secagg: %r does not serve this sum: %s", self._helper, error)
                raise
            if link.number != self.number:
                raise RemoteProtocolError(
                    f"{self._helper!r} signs as helper {link.number}, and has the place of "
                    f"helper {self.number}; compare its address with its keys",
                    sender=None,
                    phase="endorse",
                    check="helper",
                )
            self._link = link
        return self._link

    async def check(self, boxes: bytes) -> tuple[int, ...]:
        return await (await self.link()).check(boxes)

    async def reserve(self, request: bytes) -> bytes:
        return await (await self.link()).reserve(request)

    async def open(self, request: bytes) -> bytes:
        return await (await self.link()).open(request)
