"""HTTP transport for sessions: signed requests over TLS, limits, metrics and a status page.

`serve` carries a `secagg.session.Session` to the members, and `join` takes part in a session.
For one-shot sums `serve_helper` is a helper, and `reach_helper` the aggregator's link to a
helper; `send_report` sends one report to a collection (`secagg.collect`), under parameters that
`get_offer` can return before, and after an error under the same parameters only. Members sign
their requests with the identities that the server's `Registry` has (RFC 9421). TLS keeps the
channel confidential and intact, which all sums need; plain HTTP is for loopback. See
docs/deployment.md for the operator's view and the size of a server.
"""

from __future__ import annotations

from secagg.errors import needing

_PACKAGES = ("httpx", "prometheus_client", "starlette", "uvicorn")

with needing("secagg.http", "'secagg[http]'", *_PACKAGES):
    from secagg.http.bodies import Limits
    from secagg.http.helper import serve_helper
    from secagg.http.helper_link import HttpHelper, reach_helper
    from secagg.http.link import HttpLink, join
    from secagg.http.reporting import Offer, get_offer, send_report
    from secagg.http.server import Serving, serve

__all__ = [
    "HttpHelper",
    "HttpLink",
    "Limits",
    "Offer",
    "Serving",
    "get_offer",
    "join",
    "reach_helper",
    "send_report",
    "serve",
    "serve_helper",
]
