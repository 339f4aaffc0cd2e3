"""Links of an aggregator to all helpers of a sum, as their file lists them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from secagg.errors import LinkError, RemoteProtocolError
from secagg.http.address import client_context
from secagg.http.helper_link import HttpHelper, reach_helper
from secagg.oneshot import OneShotParams
from secagg.oneshot.helper_files import HelperEntry
from secagg.protocol import Identity


async def reach_helpers(
    helpers: Sequence[HelperEntry],
    params: OneShotParams,
    stack: AsyncExitStack,
    *,
    identity: Identity,
    authority: Path | str | None,
    patience: float,
    allow_plain_http: bool = False,
) -> list[HttpHelper]:
    """Return links to all helpers, by number, after every helper endorsed the parameters.

    Parameters
    ----------
    helpers : sequence of HelperEntry
    params : OneShotParams
    stack : AsyncExitStack
        Stack that closes the links.
    identity : Identity
        Key of the aggregator.
    authority : str or path or None
        File with the certificate authority of the helpers; None: the system's authorities.
    patience : float
        Seconds for a helper's answer, > 0.
    allow_plain_http : bool
        See `secagg.http.join`.

    Raises
    ------
    LinkError
        A helper does not answer or endorses nothing. Clients ask for the endorsements of
        all: the server could have invented the others' keys. The caller's parameters are
        given, so no helper can be left out of them, as `secagg.flower.helpers.endorsed` does.
    """
    links: list[HttpHelper] = []
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
            links.append(await stack.enter_async_context(reached))
        except (LinkError, RemoteProtocolError) as error:
            away = error.check == "patience"
            remedy = "start it with secagg helper serve, then try again: " if away else ""
            raise LinkError(
                f"the helper at {one.url} does not endorse this sum, and clients ask for the "
                f"endorsements of all {len(helpers)}; {remedy}{error}",
                check=error.check,
            ) from None
    # clients verify the endorsements in the order of the parameters
    return sorted(links, key=lambda link: link.number)
