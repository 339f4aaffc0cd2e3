"""Controller of the server: FLARE's federated averaging over one-shot sums.

A round is one task of FLARE. The task's result at each site is a report that `SecAggFilter`
makes. The reports go to a `secagg.session.Session`, which checks the reports and lets the
helpers open the sum. Sites learn nothing of the session; this controller is the member in the
sites' names.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any

from nvflare.apis.controller_spec import ClientTask, Task
from nvflare.apis.fl_constant import ReturnCode
from nvflare.apis.shareable import Shareable

from secagg.encoding import FixedPoint
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.flare import names
from secagg.flare.averaging import SumFedAvg
from secagg.flare.files import read_identity, read_registry
from secagg.flare.link import RunningSession
from secagg.flare.noise import noise_of_helpers
from secagg.flare.tasks import configuration
from secagg.oneshot import OneShotParams, OneShotResult
from secagg.oneshot.helper_files import HelperEntry, helpers_from_json
from secagg.protocol import Identity
from secagg.protocol.shape import Security
from secagg.session import Deadlines, Session, bind
from secagg.session.wire import Declined, encode, read_task


class OneShotFedAvg(SumFedAvg):
    """FLARE's `FedAvg` over one-shot sums: one message from each site in a round.

    Sites run any executor, with `SecAggFilter` among the filters of the task and of the result.
    Helpers are reached over HTTPS, which needs ``pip install "secagg[http]"`` at the server.
    Loading and saving the model, and all other arguments, are the same as in `FedAvg`, without
    the arguments that read a single site's results.

    Parameters
    ----------
    clip, max_weight, fractional_bits
        See `SecAggFedAvg`.
    helpers : list of dict
        Helpers: the output of ``secagg helper keygen --json`` for each helper, with the
        helper's "url".
    identity : str
        File at the server with the server's Ed25519 key in PEM, which the helpers know as
        aggregator.
    noise : dict, optional
        Noise that each helper adds: "sigma", σ in steps of 2^−f. The mean has no weights.
    threshold : int
        Number of helpers that open a sum; any fewer learn nothing.
    min_clients : int, optional
        Smallest number of sites in an opened sum; by default 70 %, at least 3.
    security : "semi-honest" or "active"
        See `secagg.oneshot.OneShotParams`. "active" takes a `registry`.
    registry : str, optional
        File at the server with the sites' Ed25519 keys by name, for "active" only, made by
        ``secagg identity register``.
    authority : str, optional
        File at the server with the certificate authority of the helpers.
    train_timeout : float
        Seconds for a round's reports, training included, > 0. Later sites are not in the sum.
    helper_timeout : float
        Seconds for each step of the helpers, > 0.
    *args, **kwargs
        Arguments of `FedAvg`, such as `num_clients`, `num_rounds` and `exclude_vars`.

    Raises
    ------
    ParameterError
        An argument is invalid, or reads a single site's results.
    """

    def __init__(
        self,
        *args: Any,  # FLARE's job API asks the base class if there are args and kwargs
        clip: float,
        helpers: list[dict[str, str]],
        identity: str,
        max_weight: int | None = None,
        fractional_bits: int = 16,
        noise: dict[str, float] | None = None,
        threshold: int = 2,
        min_clients: int | None = None,
        security: Security = "semi-honest",
        registry: str | None = None,
        authority: str | None = None,
        train_timeout: float = 600.0,
        helper_timeout: float = 60.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            *args, clip=clip, max_weight=max_weight, fractional_bits=fractional_bits, **kwargs
        )
        self.noise, self._noise = noise, noise_of_helpers(noise, max_weight)
        self.helpers, self.identity, self.threshold = helpers, identity, threshold
        self.min_clients, self.security, self.registry = min_clients, security, registry
        self.authority = authority
        self.train_timeout, self.helper_timeout = train_timeout, helper_timeout
        if (security == "active") != (registry is not None):
            raise ParameterError(
                f"security is {security!r} and registry {registry!r}; active sums take a "
                "registry of the sites' keys, and others none"
            )
        self._helpers = _entries(helpers)
        # validates the arguments here, before the job begins
        self._encoding = FixedPoint(clip=clip, fractional_bits=fractional_bits)
        self._params(self.num_clients, 1, b"")
        self._deadlines = Deadlines(
            gather=helper_timeout, reports=train_timeout, unmask=helper_timeout
        )
        self._identity: Identity | None = None
        self._running: RunningSession | None = None
        self._members: set[str] = set()
        self._agreed: bytes | None = None

    def run(self) -> None:
        """Run the job; called by FLARE."""
        self._identity = read_identity(self.identity)
        registry = None if self.registry is None else read_registry(self.registry)
        self._members = {client.name for client in self.engine.get_clients()}
        make = partial(
            Session,
            self._members,
            name=f"flare {self.fl_ctx.get_job_id()}",
            deadlines=self._deadlines,
            attempts=1,  # FLARE itself repeats lost messages
            registry=registry,
        )
        running = self._running = RunningSession(make)
        try:
            super().run()
        finally:
            running.close()

    def _configuration(self, task_name: str) -> bytes:
        if self._agreed is None:
            self._agreed = configuration(self, self._members, self.train_timeout, task_name)
        return self._agreed

    def _run_round(
        self, targets: Sequence[str], task_name: str, message: bytes, length: int
    ) -> OneShotResult:
        assert self._running is not None, "run makes it"  # noqa: S101
        params = self._params(len(targets), length, message)
        work = self._sum(self._running.session, params, message, targets, task_name)
        return self._running.run(work, self.abort_signal)

    async def _sum(
        self,
        session: Session,
        params: OneShotParams,
        message: bytes,
        targets: Sequence[str],
        task_name: str,
    ) -> OneShotResult:
        assert self._identity is not None, "run reads it"  # noqa: S101
        from secagg.http.helper_link import reach_helpers  # of another extra

        # before any site is asked: sites report only with the endorsements of all helpers
        async with reach_helpers(
            self._helpers,
            params,
            identity=self._identity,
            authority=self.authority,
            patience=self.helper_timeout,
        ) as links:
            work = [self._relay(session, site, task_name) for site in targets]
            relays = [asyncio.create_task(relay) for relay in work]
            try:
                return await session.one_shot(
                    params,
                    links,
                    message,
                    endorsements=[link.endorsement for link in links],
                    cohort=list(targets),
                )
            finally:
                for relay in relays:
                    relay.cancel()

    async def _relay(self, session: Session, site: str, task_name: str) -> None:
        """Take part in a sum in a site's name; the site's report comes in a result of FLARE."""
        frame = await session.next_task(site)
        if frame is None:
            return
        declined = encode(Declined(read_task(frame).id))
        answer = await asyncio.wrap_future(self._asked(site, task_name, frame))
        try:
            if answer is not None:
                await session.accept(site, answer)
        except RemoteProtocolError as error:
            self.warning(f"left out {site}, check {error.check}: {error}")
        # after a report that was accepted, and in a sum that is closed, this changes nothing
        with suppress(RemoteProtocolError):
            await session.accept(site, declined)

    def _asked(self, site: str, task_name: str, frame: bytes) -> Future[bytes | None]:
        """Send a site the task; the future has the report, or None without a report."""
        found: Future[bytes | None] = Future()

        def settle(value: bytes | None) -> None:
            with suppress(InvalidStateError):  # the sum is closed, or the report is there
                found.set_result(value)

        def receive(client_task: ClientTask, fl_ctx: object) -> None:
            result = client_task.result
            answer = result.get(names.ANSWER)
            good = result.get_return_code() == ReturnCode.OK and isinstance(answer, bytes)
            settle(answer if good else None)

        sent = Task(
            task_name,
            Shareable({names.SESSION_TASK: frame}),
            timeout=max(1, round(self.train_timeout)),
            result_received_cb=receive,
            # without a result: the report is late, or the site is lost
            task_done_cb=lambda task, fl_ctx: settle(None),
        )
        self.send(sent, self.fl_ctx, targets=[site])
        return found

    def sample_clients(self, num_clients: int | None = None) -> list[str]:
        """Return random sites among the sites that are here since the job began."""
        sites = sorted(self._members & {client.name for client in self.engine.get_clients()})
        return secrets.SystemRandom().sample(sites, min(num_clients or len(sites), len(sites)))

    def _params(self, sites: int, length: int, message: bytes) -> OneShotParams:
        # random, because every session needs another name, also after a restart of the job
        name = f"flare {self.current_round} ".encode() + secrets.token_bytes(16)
        return OneShotParams.suggest(
            sites,
            length,
            self._encoding,
            helpers=[(one.hpke, one.ed25519) for one in self._helpers],
            security=self.security,
            max_weight=self.max_weight,
            threshold=self.threshold,
            min_clients=self.min_clients,
            session=bind(name, message),
            noise=self._noise,
        )


def _entries(helpers: Sequence[Any]) -> list[HelperEntry]:
    try:
        entries = helpers_from_json(json.dumps(helpers))
    except TypeError:
        raise ParameterError("helpers must be a list as in a JSON file of helpers") from None
    if len({one.suite for one in entries}) != 1:
        raise ParameterError("helpers must be one or more, all of one suite")
    return entries
