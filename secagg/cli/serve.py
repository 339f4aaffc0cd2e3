"""Command ``secagg serve``: private sums as a service over HTTP."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np
import typer

from secagg import graph
from secagg._check import check_integer
from secagg.bench.cases import modulus_bits_for
from secagg.bench.table import as_json as to_json
from secagg.cli import console as options
from secagg.cli.addresses import (
    Authority,
    CertificateFile,
    HelpersFile,
    Host,
    KeyFile,
    PlainHttp,
    Port,
    as_certificate,
)
from secagg.cli.files import HelperEntry, read_helpers, read_identity, read_registry
from secagg.cli.one_shot import as_suite
from secagg.cli.vectors import number_of
from secagg.encoding import FixedPoint
from secagg.errors import LinkError, ParameterError, RemoteProtocolError
from secagg.oneshot import OneShotParams, OneShotResult
from secagg.protocol import Identity, Registry, RoundParams
from secagg.protocol.params import Security
from secagg.server import RoundResult

if TYPE_CHECKING:
    from secagg.http import HttpHelper
    from secagg.session import Session

EXAMPLES = """
[bold]Examples[/bold]

secagg serve clients.json --length 1000 --clip 8 --out sums

secagg serve clients.json --length 1000 --clip 8 --out sums --rounds 30 --folder state

secagg serve clients.json --length 1000 --clip 8 --out sums --helpers h.json --identity a.pem
"""


def serve(
    registry: Annotated[
        Path, typer.Argument(metavar="REGISTRY", help="JSON file with all clients' keys.")
    ],
    length: options.Length,
    clip: options.Clip,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder for the sums.")],
    rounds: Annotated[int, typer.Option(help="Number of sums.")] = 1,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="State, with which a killed server goes on."),
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the session, new for each.")] = "session",
    threshold: Annotated[
        int | None,
        typer.Option(
            help="Number of shares that rebuild a client's secret; with --helpers, number of "
            "helpers that open a sum.",
            show_default="recommended by `secagg params`; 2 with --helpers",
        ),
    ] = None,
    security: Annotated[
        str, typer.Option(metavar="semi-honest|active", help="Security of the sums.")
    ] = "semi-honest",
    corrupt: options.Corrupt = 0.05,
    dropout: options.Dropout = 0.05,
    modulus_bits: options.ModulusBits = None,
    deadline: Annotated[float, typer.Option(help="Seconds for each phase.")] = 600.0,
    helpers: HelpersFile = None,
    identity: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Private key of the aggregator, with --helpers."),
    ] = None,
    authority: Authority = None,
    host: Host = "127.0.0.1",
    port: Port = 8443,
    certificate: CertificateFile = None,
    key: KeyFile = None,
    operator_port: Annotated[
        int, typer.Option(help="Port of status page and metrics, on loopback; 0 for any.")
    ] = 8445,
    allow_plain_http: PlainHttp = False,
    as_json: options.Json = False,
) -> None:
    """Add the vectors of all clients that come, and write each sum into a folder.

    Clients run `secagg join`. The page at the operator's port shows the rounds live.
    """
    with options.command():
        known = read_registry(registry)
        check_integer("rounds", rounds, 1, 1 << 20)
        if security not in ("semi-honest", "active"):
            raise ParameterError(f"security must be semi-honest or active, not {security!r}")
        sums = _Sums(
            known,
            length,
            FixedPoint(clip),
            modulus_bits_for(len(known), FixedPoint(clip), modulus_bits),
            threshold,
            cast("Security", security),
            corrupt,
            dropout,
            name,
            b"" if folder is not None else os.urandom(8),
        )
        aggregator = _Aggregator.of(helpers, identity, authority, plain=allow_plain_http)
        sums.params(0, aggregator)  # an error is shown before anybody waits

        async def run() -> list[options.Document]:
            from secagg import http
            from secagg.session import Session

            session = Session(
                known,
                name=name,
                folder=folder,
                deadlines=deadline,
                registry=known if security == "active" else None,
            )
            served = http.serve(
                session,
                known,
                host=host,
                port=port,
                tls=as_certificate(certificate, key),
                operator_port=operator_port,
                allow_plain_http=allow_plain_http,
            )
            found = []
            async with served as at:
                typer.echo(f"members: {at.url}\noperator: {at.operator_url}", err=True)
                for number in range(rounds):
                    result = await sums.next(session, number, aggregator)
                    found.append(_write(out, number, result))
                    if not as_json:
                        typer.echo(
                            f"{found[-1]['out']}: sum of {found[-1]['survivors']} vectors"
                        )
            return found

        done = asyncio.run(run())
        if as_json:
            typer.echo(to_json({"session": name, "sums": done}))


@dataclass(frozen=True)
class _Aggregator:
    """Helpers of one-shot sums, and the key with which the server calls them."""

    helpers: list[HelperEntry]
    identity: Identity
    authority: Path | None
    plain: bool

    @classmethod
    def of(
        cls, helpers: Path | None, identity: Path | None, authority: Path | None, *, plain: bool
    ) -> _Aggregator | None:
        """Return the aggregator, or None without helpers."""
        if helpers is None and identity is None:
            return None
        if helpers is None or identity is None:
            raise ParameterError("--helpers and --identity need each other; give both or none")
        found = read_helpers(helpers)
        if not found:
            raise ParameterError(f"{helpers} has no helpers; list one or more")
        return cls(found, read_identity(identity), authority, plain)

    async def reach(self, params: OneShotParams, stack: AsyncExitStack) -> list[HttpHelper]:
        """Return links to the helpers that answer."""
        from secagg import http
        from secagg.http.address import client_context

        links = []
        for one in self.helpers:
            reached = http.reach_helper(
                one.url,
                params,
                identity=self.identity,
                tls=client_context(self.authority) if one.url.startswith("https:") else None,
                allow_plain_http=self.plain,
            )
            try:
                links.append(await stack.enter_async_context(reached))
            except (LinkError, RemoteProtocolError) as error:
                typer.echo(f"secagg: going on without {one.url}: {error}", err=True)
        return links


@dataclass(frozen=True)
class _Sums:
    """Parameters of all sums of a session."""

    registry: Registry
    length: int
    encoding: FixedPoint
    modulus_bits: int
    threshold: int | None
    security: Security
    corrupt: float
    dropout: float
    name: str
    run: bytes
    """Bytes that tell this run's one-shot sums from those of others; none if it can resume."""

    async def next(
        self, session: Session, number: int, aggregator: _Aggregator | None
    ) -> RoundResult | OneShotResult:
        """Run the next sum of a session."""
        params = self.params(number, aggregator)
        if isinstance(params, RoundParams):
            return await session.round(params)
        assert aggregator is not None, "one-shot sums have helpers"  # noqa: S101
        async with AsyncExitStack() as stack:
            links = await aggregator.reach(params, stack)
            endorsements = [link.endorsement for link in links]
            message = number_of(number)
            return await session.one_shot(params, links, message, endorsements=endorsements)

    def params(
        self, number: int, aggregator: _Aggregator | None
    ) -> RoundParams | OneShotParams:
        """Return the parameters of a sum."""
        return self._round() if aggregator is None else self._one_shot(number, aggregator)

    def _round(self) -> RoundParams:
        clients, threshold, neighbours = len(self.registry), self.threshold, None
        if threshold is None and self.security == "active":
            threshold = 2 * clients // 3 + 1
        elif threshold is None:
            found = graph.recommend(clients, self.corrupt, self.dropout)
            threshold, neighbours = found.threshold, found.neighbours
        return RoundParams(
            n_clients=clients,
            threshold=threshold,
            neighbours=neighbours,
            length=self.length,
            encoding=self.encoding,
            modulus_bits=self.modulus_bits,
            security=self.security,
            session=self.name.encode(),
        )

    def _one_shot(self, number: int, aggregator: _Aggregator) -> OneShotParams:
        from secagg.session import bind

        helpers = aggregator.helpers
        default = min(2, len(helpers))
        return OneShotParams(
            n_clients=len(self.registry),
            length=self.length,
            encoding=self.encoding,
            modulus_bits=self.modulus_bits,
            helpers=tuple((one.hpke, one.ed25519) for one in helpers),
            threshold=default if self.threshold is None else self.threshold,
            min_clients=3,
            security=self.security,
            suite=as_suite(helpers[0].suite),
            session=bind(f"{self.name} {number} ".encode() + self.run, number_of(number)),
        )


def _write(out: Path, number: int, result: RoundResult | OneShotResult) -> options.Document:
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"sum-{number}.npy"
    part = out / f".sum-{number}.npy"  # ends in .npy, or numpy would add it
    np.save(part, result.sum)
    part.replace(path)
    return {"out": str(path), "survivors": len(result.survivors)}
