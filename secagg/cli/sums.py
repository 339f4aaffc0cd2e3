"""Sums of ``secagg serve``: the parameters, the helpers, and the files of the results."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from secagg._check import check_integer
from secagg.cli.console import called, counted, first_of
from secagg.cli.files import read_helpers, read_identity
from secagg.cli.records import records_in
from secagg.cli.requests import Request
from secagg.cli.schedule import Schedule
from secagg.cli.suites import check_helpers
from secagg.cli.summands import suffix
from secagg.encoding import Bounded, FixedPoint, Integers
from secagg.errors import ParameterError
from secagg.oneshot import Noise, OneShotParams, OneShotResult
from secagg.oneshot.helper_files import HelperEntry
from secagg.privacy import Plan
from secagg.protocol import Identity, Registry, RoundParams
from secagg.protocol.shape import Security
from secagg.protocol.suites import SuiteName
from secagg.server import RoundResult

if TYPE_CHECKING:
    from secagg.http import HttpHelper
    from secagg.session import Session

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

    def reach(
        self, params: OneShotParams, patience: float = 30.0, *, needed: bool = True
    ) -> AbstractAsyncContextManager[list[HttpHelper]]:
        """Return the links to the helpers as a context; see `reach_helpers`."""
        # late, since all other commands work without the extra "http"
        from secagg.http.helper_link import reach_helpers

        return reach_helpers(
            self.helpers,
            params,
            identity=self.identity,
            authority=self.authority,
            patience=patience,
            allow_plain_http=self.plain,
            needed=needed,
        )

    async def ensure(self, params: OneShotParams) -> None:
        """Raise the error of an absent helper before any client waits."""
        async with self.reach(params, _PATIENCE):
            pass  # all helpers endorse

    @asynccontextmanager
    async def endorsed(
        self, params: OneShotParams
    ) -> AsyncIterator[tuple[list[HttpHelper], list[bytes]]]:
        """Yield the links to all helpers, and the helpers' endorsements."""
        async with self.reach(params) as links:
            yield links, [link.endorsement for link in links]


@dataclass(frozen=True)
class Sums:
    """Parameters of all sums of a session."""

    registry: Registry
    length: int
    encoding: FixedPoint | Integers | Bounded
    modulus_bits: int | None
    threshold: int | None
    security: Security
    corrupt: float
    dropout: float
    name: str
    run: bytes
    """Bytes that tell the one-shot sums of two runs apart; empty if the run can resume."""
    min_clients: int | None = None
    """Smallest number of clients in a sum."""
    schedule: Schedule | None = None
    """Periods of the sums, or None."""
    columns: tuple[str, ...] = ()
    """Names of the elements, or ()."""
    noise: Noise | None = None
    """Noise that the helpers of one-shot sums add, or None."""
    plan: Plan | None = None
    """Plan of the noise that the clients add in four exchanges, or None."""
    suite: SuiteName | None = None
    """Suite that the operator asks for; None: the parameters' default."""

    def __post_init__(self) -> None:
        if (clients := len(self.registry)) < 3:
            raise ParameterError(
                f"the registry has {counted(clients)}, and a sum takes 3: of two, each could "
                "subtract its own vector; add clients with secagg identity register"
            )
        if self.min_clients is not None:
            check_integer("min_clients", self.min_clients, 2, clients)

    async def next(
        self, session: Session, number: int, aggregator: Aggregator | None
    ) -> RoundResult | OneShotResult:
        """Run the next sum of a session."""
        message = self.request(number, aggregator).to_bytes()
        if aggregator is None:
            return await session.round(self._round(), message, min_clients=self.min_clients)
        params = self._one_shot(number, aggregator)
        async with aggregator.endorsed(params) as (links, endorsements):
            return await session.one_shot(params, links, message, endorsements=endorsements)

    def period(self, number: int) -> str:
        """Return the label of a sum's period, or "" without a schedule."""
        return "" if self.schedule is None else self.schedule.period(number).label

    def request(self, number: int, aggregator: Aggregator | None) -> Request:
        """Return the message of a sum, on which all clients agree."""
        # the parameters of four exchanges have the number
        shown = None if aggregator is None else number
        return Request(self.period(number), self.columns, shown)

    def file(self, number: int) -> str:
        """Return the name of a sum's file."""
        return f"sum-{self.period(number) or number}{suffix(self.columns)}"

    def params(self, number: int, aggregator: Aggregator | None) -> RoundParams | OneShotParams:
        """Return the parameters of a sum."""
        if aggregator is None and self.noise is not None:
            raise ParameterError(
                "--noise is added by the helpers of one-shot sums, and the four exchanges have "
                "none; give --helpers and --identity, or --epsilon for noise of the clients"
            )
        if aggregator is not None and self.plan is not None:
            raise ParameterError(
                "--epsilon is for noise of the clients in four exchanges, and --helpers for "
                "one-shot sums; give --noise in its place, or leave out --helpers"
            )
        return self._round() if aggregator is None else self._one_shot(number, aggregator)

    def _round(self) -> RoundParams:
        params, least = self._suggested(self.threshold), self.min_clients or 0
        if self.threshold is None and params.neighbours is None and least > params.threshold:
            # then a single client's demand for so many clients holds, whatever others accept
            return self._suggested(least)
        return params

    def _suggested(self, threshold: int | None) -> RoundParams:
        # "auto" finds k for its own t, so a given t goes with the complete graph
        neighbours: Literal["auto"] | None = "auto" if threshold is None else None
        name = self.name.encode()
        if self.plan is not None:
            return self.plan.params(
                session=name,
                security=self.security,
                neighbours=neighbours,
                threshold=threshold,
                suite=self.suite,
            )
        return RoundParams.suggest(
            len(self.registry),
            self.length,
            self.encoding,
            security=self.security,
            corrupt=self.corrupt,
            dropout=self.dropout,
            neighbours=neighbours,
            threshold=threshold,
            session=name,
            modulus_bits=self.modulus_bits,
            suite=self.suite,
        )

    def _one_shot(self, number: int, aggregator: Aggregator) -> OneShotParams:
        from secagg.session import bind

        message = self.request(number, aggregator).to_bytes()
        params = OneShotParams.suggest(
            len(self.registry),
            self.length,
            self.encoding,
            helpers=[(one.hpke, one.ed25519) for one in aggregator.helpers],
            security=self.security,
            corrupt=self.corrupt,
            dropout=self.dropout,
            threshold=self.threshold,
            min_clients=self.min_clients,
            session=bind(f"{self.name} {number} ".encode() + self.run, message),
            modulus_bits=self.modulus_bits,
            noise=self.noise,
        )
        check_helpers(self.suite, params)
        return params


def prepare(
    out: Path, rounds: int | None, folder: Path | None, columns: tuple[str, ...] = ()
) -> None:
    """Make the folder of the sums, of no earlier sums or records; see `prepare_files`.

    Parameters
    ----------
    out : Path
    rounds : int or None
        Number of the sums. None: the sums have the names of periods.
    folder : Path or None
    columns : tuple of str
    """
    earlier = os.listdir(out) if out.is_dir() else []
    sums, records = [name for name in earlier if name.startswith("sum-")], records_in(earlier)
    names = records + sums
    if rounds is not None:
        # records of failures alone are no obstacle: the same command tries again
        names = [f"sum-{number}{suffix(columns)}" for number in range(rounds)]
        names += records if sums else []
    prepare_files(out, names, folder)


def prepare_files(out: Path, names: Iterable[str], folder: Path | None) -> None:
    """Make the folder of some results, before any client sends a vector.

    Raises
    ------
    ParameterError
        `out` is a file, or cannot be written. Or `out` has one of the results, and no server
        with this `folder` can have written that result.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise ParameterError(f"--out {out} is no folder; take another one") from None
    if not os.access(out, os.W_OK | os.X_OK):
        raise ParameterError(f"--out {out} cannot be written; take another folder")
    # a session that goes on may have written these results before
    if folder is not None and (folder / "session").exists():
        return
    earlier = set(os.listdir(out))
    for name in names:
        if name in earlier:
            raise ParameterError(
                f"{out / name} is of an earlier run, and this run would overwrite it; take "
                "another --out"
            )


def summed(result: RoundResult | OneShotResult, registry: Registry) -> str:
    """Return the number of vectors in a sum in words, with the clients that are missing."""
    survivors = set(result.survivors)
    missing = sorted(called(u) for u in registry if u not in survivors)
    if not missing:
        return f"sum of {len(registry)} vectors"
    number = f"{len(survivors)} of {len(registry)}"
    return f"sum of {number} vectors, missing {first_of(missing)}"
