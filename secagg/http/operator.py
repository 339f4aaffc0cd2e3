"""Status page and metrics, for the operator alone, served on loopback.

Page and metrics have no vector, weight or message. But the names of members and of drop-outs
are nobody else's business.
"""

from __future__ import annotations

from importlib.resources import files

from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from secagg.http import asgi
from secagg.http.application import Members
from secagg.http.metrics import Metrics
from secagg.http.status import Status
from secagg.session import Session

_HEADERS = {
    # the page has its style and script inside, and asks this server only
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


class Operator:
    """Operator's side of a session over HTTP."""

    def __init__(self, session: Session, members: Members) -> None:
        self._status, self._metrics = Status(session.name), Metrics()
        self._page = files("secagg.http").joinpath("status.html").read_text("utf-8")
        for hook in (self._status, self._metrics):
            session.watch(hook)
        self._metrics.gauge(
            "secagg_http_polls", "Requests that wait for a task.", lambda: members.polls
        )
        self._metrics.gauge(
            "secagg_http_bytes_in_flight", "Bytes of bodies.", lambda: members.budget.held
        )

    def application(self) -> Starlette:
        """Return the ASGI application."""
        routes = [
            Route("/", self.page),
            Route("/health", asgi.health),
            Route("/metrics", self.metrics),
            Route("/status.json", self.status),
        ]
        # a site whose name resolves to loopback could read the page in a browser
        hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])
        return asgi.build(routes, [hosts])

    async def page(self, _: Request) -> Response:
        """Respond with the status page."""
        return HTMLResponse(self._page, headers=_HEADERS)

    async def metrics(self, _: Request) -> Response:
        """Respond with the metrics, as Prometheus reads them."""
        return Response(self._metrics.text(), media_type=CONTENT_TYPE_LATEST)

    async def status(self, _: Request) -> Response:
        """Respond with the state of the session."""
        return JSONResponse(self._status.document(), headers={"Cache-Control": "no-store"})
