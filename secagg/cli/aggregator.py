"""Helpers of ``secagg serve --helpers``, and the links of the server to these helpers."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from secagg.cli.files import read_helpers, read_identity
from secagg.errors import ParameterError
from secagg.oneshot import OneShotParams
from secagg.oneshot.helper_files import HelperEntry
from secagg.protocol import Identity

if TYPE_CHECKING:
    from secagg.http import HttpHelper

_PATIENCE = 5.0
"""Seconds to wait for a helper before the server listens, while no client waits."""


@dataclass(frozen=True)
class Aggregator:
    """Helpers of the server's one-shot sums, and the identity in requests to the helpers."""

    helpers: list[HelperEntry]
    identity: Identity
    authority: Path | None
    plain: bool

    @classmethod
    def of(
        cls, helpers: Path | None, identity: Path | None, authority: Path | None, *, plain: bool
    ) -> Aggregator | None:
        """Return the aggregator, or None without helpers."""
        if helpers is None and identity is None:
            return None
        if helpers is None or identity is None:
            raise ParameterError("--helpers and --identity need each other; give both or none")
        found = read_helpers(helpers)
        if not found:
            raise ParameterError(f"{helpers} has no helpers; list one or more")
        return cls(found, read_identity(identity), authority, plain)

    async def reach(
        self, params: OneShotParams, stack: AsyncExitStack, patience: float = 30.0
    ) -> list[HttpHelper]:
        """Return links to all helpers; see `reach_helpers`."""
        # late, since all other commands work without the extra "http"
        from secagg.http.helper_links import reach_helpers

        return await reach_helpers(
            self.helpers,
            params,
            stack,
            identity=self.identity,
            authority=self.authority,
            patience=patience,
            allow_plain_http=self.plain,
        )

    async def try_all(self, params: OneShotParams) -> None:
        """Raise `LinkError` unless all helpers endorse the parameters now."""
        async with AsyncExitStack() as stack:
            await self.reach(params, stack, _PATIENCE)
