"""Addresses of servers: TLS everywhere but on loopback, unless asked for explicitly."""

from __future__ import annotations

import re
import ssl
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from secagg._check import check_flag
from secagg.errors import ParameterError

_ORIGIN = re.compile(r"(https?)://([a-z0-9.-]+|\[[0-9a-f:]+\])(?::([1-9][0-9]{0,4}))?")
_USUAL = {"http": "80", "https": "443"}


def is_loopback(host: str) -> bool:
    """Return True for localhost and for addresses that do not leave the machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_url(url: str, *, allow_plain_http: bool) -> str:
    """Return a server's base URL without a slash at the end.

    Raises
    ------
    ParameterError
        `url` is not the URL of a server, or plain HTTP would leave the machine: masked vectors
        and helpers' answers need a confidential, intact channel.
    """
    check_flag("allow_plain_http", allow_plain_http)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), 0
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ParameterError(
            f"{url!r} is not the URL of a server, such as https://host:8443"
        ) from None
    if parts.query or parts.fragment or parts.username or parts.path not in ("", "/"):
        raise ParameterError(f"the URL {url!r} must end after the host and port")
    if parts.scheme == "http" and not allow_plain_http and not is_loopback(parts.hostname):
        raise ParameterError(
            f"{url} is not encrypted, and the messages need a confidential channel; take "
            "https://, or allow_plain_http=True where a tunnel or a proxy encrypts"
        )
    return f"{parts.scheme}://{parts.netloc}"


def check_host(host: str, *, encrypted: bool, allow_plain_http: bool) -> None:
    """Raise `ParameterError` if a server would offer plain HTTP to other machines."""
    check_flag("allow_plain_http", allow_plain_http)
    if not encrypted and not allow_plain_http and not is_loopback(host):
        raise ParameterError(
            f"without TLS the server may listen on loopback only, not on {host!r}; pass "
            "tls=(certificate, key), or allow_plain_http=True behind a proxy that ends TLS"
        )


def check_origin(origin: str) -> str:
    """Return an origin of web pages, as browsers send the origin.

    Raises
    ------
    ParameterError
        `origin` is a pattern or no origin, or the pages come over an open network.
    """
    found = _ORIGIN.fullmatch(origin) if isinstance(origin, str) else None
    if found is None or found[3] == _USUAL[found[1]]:
        raise ParameterError(
            f"{origin!r} is not the origin of a page as browsers send it, such as "
            "https://app.example or https://app.example:8080: in small letters, without the "
            "usual port, a path or a pattern"
        )
    if found[1] == "http" and not is_loopback(found[2].strip("[]")):
        raise ParameterError(
            f"pages of {origin} come unencrypted, so anybody on the way can change their "
            "scripts; serve the pages over https"
        )
    return origin


def client_context(authority: Path | str | None) -> ssl.SSLContext:
    """Return a context that trusts the system's authorities, or only a file's authority.

    Raises
    ------
    ParameterError
        The file cannot be read or is no certificate in PEM.
    """
    try:
        return ssl.create_default_context(cafile=authority)
    except (OSError, ssl.SSLError) as error:
        raise ParameterError(
            f"cannot read certificates from {authority}: {error}; pass a file in PEM"
        ) from None
