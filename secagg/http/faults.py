"""Faults of requests: the cause, the place, the value and a remedy, for every way to fail.

Between a party and the server stand proxies, gateways, firewalls and the portals of networks.
These programs answer in the server's place, and close connections. A problem document with a
check is the server's own (see `secagg.http.problems`). Any other error is attributed to a
program between.
"""

from __future__ import annotations

import os
import socket
import ssl
from contextlib import suppress
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from secagg.errors import LinkError

_QUOTED = 500
"""Characters of a server's text that an error quotes."""
_TYPES = ("", "application/json", "application/octet-stream")
"""Content types that a server of secagg sends with status 200."""
_PLAIN = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
"""OpenSSL's reasons where the other side answers without TLS."""
_CUT = (ssl.SSLEOFError, ssl.SSLSyscallError, ssl.SSLZeroReturnError)
_AGAIN = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
_PATHS = "let it pass requests to /v1/ unchanged"
_BEHIND = "start the server, and compare its address with the address to which the proxy passes"
_REMEDIES = {
    400: "take https:// if the server has TLS, and let the proxy pass requests unchanged",
    401: f"it asks for a login, which secagg does not send; {_PATHS}",
    403: f"it is a firewall, a proxy or another server; {_PATHS}",
    404: f"check host and port of the URL; if a proxy is there, {_PATHS}",
    405: f"check host and port of the URL; if a proxy is there, {_PATHS}",
    407: "a proxy on the way asks for a login, which secagg sends for https:// only; take "
    "https:// with HTTPS_PROXY=http://user:password@host:port, or a way without that proxy",
    408: "raise the time that the proxy gives to a request",
    411: "turn off what makes the proxy drop Content-Length",
    413: "raise the proxy's limit on bodies, in nginx client_max_body_size",
    421: "take the host name under which the proxy knows the server",
    429: "raise the number of requests that the proxy accepts from one address",
    431: "raise the proxy's limit on headers: a signed request has about a kilobyte of them",
    502: _BEHIND,
    503: _BEHIND,
    504: f"let the proxy wait a minute for a response; {_BEHIND}",
    511: "sign in to the network with a browser",
}
"""Remedies for statuses that no server of secagg has sent."""
_ENDED = (
    "the server or a proxy ended the connection: let both run; if they do, compare their "
    "limits, such as secagg.http.Limits, with the size of the model"
)
_OTHER = "check host and port of the URL, and the proxies on the way"
_OWN_REMEDIES = {
    "busy": (
        "run each client in one process, or ask its operator for larger secagg.http.Limits, "
        "or pass a longer patience"
    ),
    "deadline": "take a faster line, or ask its operator for larger secagg.http.Limits",
    "journal": "ask the operator of the helper, whose log has the reason",
    "server": "ask the operator of the server, whose log has the reason",
}
_UNTRUSTED = "trust its authority with tls=… (secagg join --authority)"
_CERTIFICATES = {
    9: "compare the clock of this machine with the dates of the certificate",
    10: "renew the server's certificate, or correct the clock of this machine",
    62: "take a host name of the certificate in the URL, or add this host name to it",
    64: "take a host name of the certificate in the URL, or add this address to it",
}
"""Remedies by OpenSSL's codes: not yet valid, expired, wrong name, wrong address."""


class Fault(NamedTuple):
    """Cause of a failed request that can succeed later, and the remedy if the cause stays."""

    cause: str
    remedy: str


class Proxy(NamedTuple):
    """Proxy of the environment: host and port, and the variable with the proxy's URL."""

    address: str
    source: str

    def __str__(self) -> str:
        return f"{self.address} of {self.source}"


def is_passing(response: httpx.Response) -> bool:
    """Return True for a status after which the same request can succeed later."""
    if response.status_code == HTTPStatus.NETWORK_AUTHENTICATION_REQUIRED:
        return False
    return response.status_code >= 500 or response.status_code in _AGAIN


def check_type(response: httpx.Response) -> None:
    """Raise `LinkError` ("type") for a page of another server, such as a portal's page."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.status_code == HTTPStatus.OK and kind not in _TYPES:
        raise LinkError(
            f"{_said(response)} and a content of type {kind[:_QUOTED]!r}, which no server "
            "of secagg sends; sign in to the network if it has a portal, or check host and "
            "port of the URL",
            check="type",
        )


def problem_of(response: httpx.Response) -> tuple[str, str] | None:
    """Return check and detail of an error that a server of secagg sent, or else None."""
    with suppress(ValueError, RecursionError):
        document = response.json()
        if isinstance(document, dict):
            check, detail = document.get("check"), document.get("detail")
            if isinstance(check, str) and isinstance(detail, str):
                return check[:_QUOTED], detail[:_QUOTED]
    return None


def refused(response: httpx.Response) -> LinkError:
    """Return the error of a request that the server will never serve.

    The error's check is the server's own, "redirect", or "status" for programs between.
    """
    problem = problem_of(response)
    if problem is not None:
        return LinkError(
            f"{_origin(str(response.url))} refuses this party: {problem[1]}", check=problem[0]
        )
    cause, remedy = of_response(response)
    check = "redirect" if response.is_redirect else "status"
    return LinkError(f"{cause}; {remedy}", check=check)


def of_response(response: httpx.Response) -> Fault:
    """Return the fault that the status of a response stands for."""
    problem = problem_of(response)
    if problem is not None:
        check, detail = problem
        return Fault(
            f"{_said(response)}, {check}: {detail}",
            _OWN_REMEDIES.get(check, "pass a longer patience"),
        )
    if response.is_redirect:
        return _redirection(response)
    remedy = _REMEDIES.get(response.status_code, _OTHER)
    return Fault(f"{_said(response)}, which no server of secagg sent in this form", remedy)


def of_error(error: httpx.TransportError, url: str, *, answered: bool) -> Fault:
    """Return the fault behind a request without a response.

    Parameters
    ----------
    error : httpx.TransportError
    url : str
        Base URL of the server.
    answered : bool
        True if the server answered an earlier request: so the server has TLS for a URL with
        https, and none otherwise.

    Raises
    ------
    LinkError
        No repetition helps. "tls": no encrypted connection can be made. "proxy": the proxy of
        the environment lets no connection through.
    """
    cause = f"{type(error).__name__} {error}".rstrip(" .")
    proxy = _proxy(url)
    if isinstance(error, httpx.ProxyError):
        _check_proxy(error, url, proxy)
        return Fault(f"the proxy {proxy or '?'}: {cause}", _REMEDIES[502])
    _check_tls(error, url)
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        if proxy:
            remedy = "check that proxy, or write the server's host into NO_PROXY"
            return Fault(f"{cause}, through the proxy {proxy}", remedy)
        if _found(error, socket.gaierror) is not None:
            return Fault(cause, "check the host name in the URL")
        if _found(error, *_CUT) is not None:
            return Fault(cause, "take http:// if the server has no TLS")
    closed = isinstance(error, httpx.RemoteProtocolError | httpx.ReadError | httpx.WriteError)
    if closed and answered:
        return Fault(cause, _ENDED)
    if closed and url.startswith("http:"):
        return Fault(cause, "take https:// if the server has TLS, or check the port of the URL")
    return Fault(cause, "check that the server runs, or pass a longer patience")


def _check_tls(error: httpx.TransportError, url: str) -> None:
    """Raise `LinkError` if no repetition makes an encrypted connection possible."""
    found = _found(error, ssl.SSLError) if isinstance(error, httpx.ConnectError) else None
    # a server that stops cuts the connection, and comes back
    if not isinstance(found, ssl.SSLError) or isinstance(found, _CUT):
        return
    if isinstance(found, ssl.SSLCertVerificationError):
        remedy = _CERTIFICATES.get(found.verify_code, _UNTRUSTED)
    elif found.reason in _PLAIN:
        remedy = "take http:// if the server has no certificate"
    else:
        remedy = "compare the TLS settings of both sides"
    raise LinkError(f"no encrypted connection to {url} ({found}); {remedy}", check="tls")


def _check_proxy(error: httpx.ProxyError, url: str, proxy: Proxy | None) -> None:
    """Raise `LinkError` if the proxy of the environment rejects the connection for good."""
    status = str(error)[:3]  # the HTTP library has the status in the text only
    if status.isdigit() and 400 <= int(status) < 500 and int(status) not in _AGAIN:
        remedy = "let it connect to the server"
        if status == "407" and proxy is not None:
            remedy = (
                f"write its user and password into {proxy.source}: http://user:password@host"
            )
        raise LinkError(
            f"the proxy {proxy or '?'} lets no connection to {url} through "
            f"({str(error)[:_QUOTED]}); {remedy}, or the server's host into NO_PROXY",
            check="proxy",
        )


def _redirection(response: httpx.Response) -> Fault:
    """Return the fault of a redirection, which is not followed: a signature is for one path."""
    here = str(response.url)
    try:
        there = urljoin(here, response.headers.get("location", ""))
        origin, path = _origin(there), urlsplit(there).path
    except ValueError:
        origin = path = "?"
    if path == urlsplit(here).path and origin != _origin(here):
        remedy = f"pass the URL {origin} if that is the server"
    else:
        remedy = f"sign in to the network if it has a portal; if a proxy is there, {_PATHS}"
    # without the query, which can have tokens of a login
    return Fault(f"{_said(response)}, a redirection to {(origin + path)[:_QUOTED]}", remedy)


def _said(response: httpx.Response) -> str:
    """Return a text with the server that answered, the request and the status."""
    program = response.headers.get("server", "")[:80]
    named = f" ({program})" if program else ""
    request = response.request
    return (
        f"{_origin(str(request.url))}{named} answered {request.method} {request.url.path}, of "
        f"{request.headers.get('content-length', '0')} bytes, with status "
        f"{response.status_code} {response.reason_phrase}".rstrip()
    )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def _proxy(url: str) -> Proxy | None:
    """Return the environment's proxy for a URL, or None without any."""
    parts = urlsplit(url)
    if parts.scheme != "https" or proxy_bypass(parts.hostname or ""):
        return None
    proxies = getproxies()
    kind = "https" if proxies.get("https") else "all"
    found = proxies.get(kind)
    if not found:
        return None
    named = {one.lower(): one for one, value in os.environ.items() if value}
    small = f"{kind}_proxy"
    # the small letters win; a proxy of no variable is one of macOS or Windows
    variable = small if os.environ.get(small) else named.get(small, "the system's settings")
    netloc = urlsplit(found if "://" in found else f"//{found}").netloc
    return Proxy(netloc.rpartition("@")[2], variable)


def unusable_proxies() -> str:
    """Return the error for variables of the environment that are no valid proxies."""
    known = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")
    named = sorted(
        name for name, value in os.environ.items() if value and name.lower() in known
    )
    return (
        f"no connection can be made from the proxies of the environment ({', '.join(named)}); "
        "write them as http://host:port (a SOCKS proxy needs the package socksio), and "
        "NO_PROXY as host names with commas"
    )


def _found(error: BaseException, *kinds: type[BaseException]) -> BaseException | None:
    """Return the first error of some kinds among an error and the error's causes."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, kinds):
        cause = cause.__cause__ or cause.__context__
    return cause
