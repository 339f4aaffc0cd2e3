"""Status page and metrics, for the operator alone, served on loopback.

Page and metrics have no vector, weight or message. But the names of members and of drop-outs
are nobody else's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.resources import files

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from secagg.http import asgi, certificates
from secagg.http.application import Members
from secagg.http.status import LISTED, Status
from secagg.session import Attendance, Session, events

_HEADERS = {
    # the page has its style and script inside, and asks this server only
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_LABELLED = 100
"""Most members of a session whose members have a label each."""
_SECONDS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000)


class Metrics:
    """Metrics for Prometheus, from the events of a session: counts, never contents.

    Counters, gauges and histograms of a session, in a collector registry of their own.

    Labels have few values: names of phases, checks and errors. Up to 100 members have a label
    each; of more members there are counts only.

    Parameters
    ----------
    members : mapping of int to str
        Names of the members that have a label, by id.
    attendance : callable
        Function that returns the `Attendance` of each member.
    """

    def __init__(
        self, members: Mapping[int, str], attendance: Callable[[], Mapping[int, Attendance]]
    ) -> None:
        # not prometheus_client's global registry, where a second session would clash
        self._registry = own = CollectorRegistry()
        gauge = self._gauge = partial(Gauge, namespace="secagg", registry=own)
        counter = partial(Counter, namespace="secagg", registry=own)
        seconds = partial(Histogram, namespace="secagg", registry=own, buckets=_SECONDS)
        self._cohort = gauge("cohort", "Clients of the attempt that runs.")
        self._present = gauge("gather_present", "Members present, while a round waits.")
        self._wanted = gauge("gather_wanted", "Members that the round waits for.")
        self._survivors = gauge("survivors", "Clients in the last sum.")
        self._rounds = counter("attempts", "Attempts at a round, by outcome.", ["outcome"])
        self._round = seconds("round_seconds", "Seconds of an attempt with a result.")
        self._phase = seconds("phase_seconds", "Seconds of a phase.", ["phase"])
        self._missing = counter("missing", "Answers that did not come in time.", ["phase"])
        self._accepted = counter("answers", "Accepted answers.", ["phase"])
        self._rejected = counter("answers_rejected", "Rejected answers.", ["phase", "check"])
        self._declined = counter("declined", "Members that declined a task.")
        self._helpers = counter("helper_failures", "Failures of helpers.", ["helper", "phase"])
        self._verdicts = counter("verdicts", "Proofs against clients.", ["kind"])
        self._bytes = counter("bytes", "Bytes of tasks and accepted answers.", ["direction"])
        self._attendance = attendance
        here = gauge("member_present", "1 if the member is present.", ["member"])
        missing = counter("member_missing", "Phases that it did not answer.", ["member"])
        self._member_present = {u: here.labels(name) for u, name in members.items()}
        self._member_missing = {u: missing.labels(name) for u, name in members.items()}

    def gauge(self, name: str, what: str, value: Callable[[], float]) -> None:
        """Add a gauge that is read whenever the metrics are read."""
        self._gauge(name, what).set_function(value)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        if self._member_present:
            for u, one in self._attendance().items():
                self._member_present[u].set(one.present)
        return generate_latest(self._registry)

    def __call__(self, event: events.Event) -> None:
        """Count an event."""
        match event:
            case events.Gathering():
                self._gather(event.present, event.wanted)
            case events.RoundBegun():
                self._gather(0, 0)
                self._cohort.set(event.cohort)
            case events.MessageAccepted():
                self._accepted.labels(event.phase).inc()
            case events.MessageRejected():
                self._rejected.labels(event.phase, event.check).inc()
            case events.MemberDeclined():
                self._declined.inc()
            case events.ClientConvicted():
                self._verdicts.labels(event.kind).inc()
            case events.HelperFailed():
                self._helpers.labels(str(event.helper), event.phase).inc()
            case events.PhaseClosed():
                self._phase.labels(event.phase).observe(event.seconds)
                self._missing.labels(event.phase).inc(len(event.missing))
                self._bytes.labels("down").inc(event.bytes_down)
                self._bytes.labels("up").inc(event.bytes_up)
                if event.phase not in events.HELPER_PHASES:
                    for u in self._member_missing.keys() & set(event.missing):
                        self._member_missing[u].inc()
            case events.RoundFinished():
                self._over("finished")
                self._survivors.set(event.survivors)
                self._round.observe(event.seconds)
            case events.RoundFailed():
                self._over(event.error)

    def _gather(self, present: int, wanted: int) -> None:
        self._present.set(present)
        self._wanted.set(wanted)

    def _over(self, outcome: str) -> None:
        self._gather(0, 0)
        self._cohort.set(0)
        self._rounds.labels(outcome).inc()


class Operator:
    """Operator's side of a session over HTTP."""

    def __init__(self, session: Session, members: Members) -> None:
        count = len(session.members)
        listed = session.attendance if count <= LISTED else None
        self._status = Status(session.name, names=session.names, attendance=listed)
        labelled = session.members if count <= _LABELLED else ()
        self._metrics = Metrics({u: session.called(u) for u in labelled}, session.attendance)
        self._page = files("secagg.http").joinpath("status.html").read_text("utf-8")
        for hook in (self._status, self._metrics):
            session.watch(hook)
        self._metrics.gauge(
            "http_polls", "Requests that wait for a task.", lambda: members.polls
        )
        self._metrics.gauge(
            "http_bytes_in_flight", "Bytes of bodies.", lambda: members.budget.held
        )
        if (budget := session.budget) is not None:
            self._metrics.gauge("epsilon_budget", "ε of the budget.", lambda: budget.epsilon)
            self._metrics.gauge(
                "epsilon_spent",
                "ε that all attempts have spent: a meter, for noise fixed in advance and the "
                "parties that secagg.privacy.against names. The promise is the budget.",
                lambda: session.spent.epsilon(budget.delta),
            )

    def show_certificate(self, end: float) -> None:
        """Add the gauge of a certificate that ends at `end`, in seconds since 1970."""
        certificates.show_end(self._metrics.gauge, end)

    def application(self) -> Starlette:
        """Return the ASGI application."""
        routes = [
            Route("/", self.page),
            asgi.HEALTH,
            Route("/metrics", self.metrics),
            Route("/status.json", self.status),
        ]
        return private(routes)

    async def page(self, _: Request) -> Response:
        """Respond with the status page."""
        return HTMLResponse(self._page, headers=_HEADERS)

    async def metrics(self, _: Request) -> Response:
        """Respond with the metrics, as Prometheus reads them."""
        return metrics_response(self._metrics.text())

    async def status(self, _: Request) -> Response:
        """Respond with the state of the session."""
        return JSONResponse(self._status.document(), headers={"Cache-Control": "no-store"})


def private(routes: Sequence[Route]) -> Starlette:
    """Return an application for loopback, which answers under names of loopback only."""
    # a site whose name resolves to loopback could read the answers in a browser
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
    return asgi.build(routes, [hosts])


def metrics_response(text: bytes) -> Response:
    """Return the response with metrics in the text format of Prometheus."""
    return Response(text, media_type=CONTENT_TYPE_LATEST)
