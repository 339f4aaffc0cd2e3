"""Sessions over HTTP, as the commands for sums and for studies serve and join them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from secagg._check import check_integer
from secagg.cli.addresses import as_certificate
from secagg.cli.console import call_clients
from secagg.cli.files import read, read_helpers, read_identity, read_registry
from secagg.cli.lines import fact
from secagg.cli.notices import notices
from secagg.errors import BudgetSpent, LinkError
from secagg.oneshot import OneShotPolicy
from secagg.privacy import Budget, PrivacyLedger
from secagg.protocol import ClientPolicy, CohortLedger, Registry
from secagg.protocol.bounds import Bounds
from secagg.protocol.key_files import client_of
from secagg.protocol.shape import Security
from secagg.session import Completed

if TYPE_CHECKING:
    from secagg.session import Session
    from secagg.session.training import Train


@dataclass(frozen=True)
class Hosting:
    """Session of a registry's clients, and the addresses of the server."""

    registry: Registry
    name: str
    folder: Path | None
    deadline: float
    security: Security
    host: str
    port: int
    certificate: Path | None
    key: Path | None
    operator_port: int
    plain: bool
    budget: Budget | None = None
    policy: ClientPolicy | None = None

    async def run(self, work: Callable[[Session], Awaitable[None]]) -> None:
        """Serve a session while a function works with the session, then end the session.

        If the function fails, a session with a folder stays open.
        """
        # late, since all other commands work without the extra "http"
        from secagg import http
        from secagg.session import Session

        session = Session(
            self.registry,
            name=self.name,
            folder=self.folder,
            deadlines=self.deadline,
            registry=self.registry if self.security == "active" else None,
            budget=self.budget,
            policy=self.policy,
        )
        served = http.serve(
            session,
            self.registry,
            host=self.host,
            port=self.port,
            tls=as_certificate(self.certificate, self.key),
            operator_port=self.operator_port,
            allow_plain_http=self.plain,
        )
        failed: Exception | None = None
        async with served as at:
            fact(f"members: {at.url}")
            fact(f"operator: {at.operator_url}")
            try:
                await work(session)
            except Exception as error:
                # an error out of the block leaves the session open, and the clients wait:
                # the same command tries again with the state in the folder
                if self.folder is not None and not isinstance(error, BudgetSpent):
                    raise
                # no command can go on without state or budget, so the session must end first
                failed = error
        if failed is not None:
            raise failed


def attend(
    url: str,
    client: str,
    train: Train,
    identity: Path,
    registry: Path | None,
    helpers: Path | None,
    authority: Path | None,
    patience: float,
    *,
    allow_plain_http: bool,
    ledger: CohortLedger | None = None,
    spending: PrivacyLedger | None = None,
    min_clients: int | None = None,
    require_hybrid: bool = False,
    colluders: int | None = None,
) -> tuple[Completed, str]:
    """Take part in a session until the end.

    Returns
    -------
    Completed
        The rounds and reports of the client.
    str
        Likely reason why the client was last left out of a sum, or "".
    """
    policy = _policy(min_clients, colluders, require_hybrid=require_hybrid)
    key, name = read_identity(identity), client_of(client)
    call_clients([name])

    async def run() -> Completed:
        from secagg import http
        from secagg.http.address import client_context

        one_shot = None
        if helpers is not None:
            one_shot = one_shot_policy(
                helpers, min_clients, colluders=colluders, require_hybrid=require_hybrid
            )
        if authority is not None:
            # the error of ssl would not name the file
            read(authority)
        try:
            return await http.join(
                url,
                name,
                train,
                identity=key,
                registry=None if registry is None else read_registry(registry),
                ledger=ledger,
                spending=spending,
                policy=policy,
                one_shot_policy=one_shot,
                tls=client_context(authority) if url.startswith("https:") else None,
                allow_plain_http=allow_plain_http,
                patience=patience,
            )
        except LinkError as error:
            if error.check != "signature":
                raise
            raise LinkError(
                f"{error}; check that --identity {identity} is the key of --client "
                f"{client}, and that the server's registry has {key.public.hex()} for it",
                check=error.check,
            ) from None

    # sites of studies have a ledger
    with notices(study=ledger is not None) as noted:
        return asyncio.run(run()), noted.hint


def one_shot_policy(
    helpers: Path,
    least: int | None,
    bounds: Bounds | None = None,
    *,
    require_hybrid: bool = False,
    colluders: int | None = None,
) -> OneShotPolicy:
    """Return the policy of a client that trusts the helpers of a file."""
    _check_least(least)
    trusted = frozenset(one.ed25519 for one in read_helpers(helpers))
    return OneShotPolicy(
        helpers=trusted,
        min_clients=least or 3,
        colluders=colluders,
        bounds=bounds,
        require_hybrid=require_hybrid,
    )


def _check_least(least: int | None) -> None:
    # a policy for two clients would be another option
    if least is not None:
        check_integer("min_clients", least, 3, 1 << 20)


def _policy(least: int | None, colluders: int | None, *, require_hybrid: bool) -> ClientPolicy:
    """Return the policy of a client that helps to open no sum over fewer clients."""
    _check_least(least)
    if least is None:
        return ClientPolicy(colluders=colluders, require_hybrid=require_hybrid)
    # t members that accept fewer could open a smaller sum, so the threshold counts, too
    return ClientPolicy(
        min_clients=least,
        min_cohort=least,
        min_threshold=least,
        colluders=colluders,
        require_hybrid=require_hybrid,
    )
