"""Helpers of one-shot sums, as a job names them: services of ``secagg helper serve``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from secagg.errors import LinkError, ParameterError, RemoteProtocolError
from secagg.oneshot import OneShotParams
from secagg.oneshot.suites import SuiteName
from secagg.protocol import Identity

if TYPE_CHECKING:
    from secagg.http import HttpHelper

__all__ = ["Helpers"]


@dataclass(frozen=True)
class Helpers:
    """Helpers of the sums of a job.

    Attributes
    ----------
    urls : tuple of str
    suite : str
        Suite of all helpers' HPKE keys.
    keys : tuple of (bytes, bytes)
        Public HPKE key and Ed25519 key of each helper.
    """

    urls: tuple[str, ...]
    suite: SuiteName
    keys: tuple[tuple[bytes, bytes], ...]

    @classmethod
    def of(cls, entries: Sequence[Any]) -> Helpers:
        """Read what ``secagg helper keygen --json`` prints of each helper, with its "url".

        Raises
        ------
        ParameterError
            The entries are of another form, or there are none.
        """
        try:
            (suite,) = {one["suite"] for one in entries}
            keys = [
                (bytes.fromhex(one["hpke"]), bytes.fromhex(one["ed25519"])) for one in entries
            ]
            return cls(tuple(str(one["url"]) for one in entries), suite, tuple(keys))
        except (ValueError, KeyError, TypeError):
            raise ParameterError(
                f"helpers is {entries!r}; pass a list of what secagg helper keygen --json "
                'prints of each, with its "url", all of one suite'
            ) from None

    async def reach(
        self,
        params: OneShotParams,
        stack: AsyncExitStack,
        *,
        identity: Identity,
        authority: str | None,
        patience: float,
    ) -> list[HttpHelper]:
        """Return links to all helpers, each of which has endorsed the parameters.

        Parameters
        ----------
        params : OneShotParams
        stack : AsyncExitStack
            Stack that closes the links.
        identity : Identity
            Key of the aggregator.
        authority : str or None
            File with the certificate authority of the helpers; None: those of the system.
        patience : float
            Seconds for a helper's answer.

        Raises
        ------
        LinkError
            A helper does not answer or endorses nothing. Sites ask for the endorsements of
            all, since the server could have invented the others' keys.
        """
        from secagg import http  # of another extra
        from secagg.http.address import client_context

        links: list[HttpHelper] = []
        for url in self.urls:
            tls = client_context(authority) if url.startswith("https:") else None
            reached = http.reach_helper(
                url, params, identity=identity, tls=tls, patience=patience
            )
            try:
                links.append(await stack.enter_async_context(reached))
            except (LinkError, RemoteProtocolError) as error:
                raise LinkError(
                    f"the helper at {url} does not endorse this sum, and sites ask for the "
                    f"endorsements of all {len(self.urls)}; start it with secagg helper serve "
                    f"({error})",
                    check=error.check,
                ) from None
        # sites take the endorsements in the order of the keys
        return sorted(links, key=lambda link: link.number)
