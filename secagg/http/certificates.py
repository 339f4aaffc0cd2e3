"""Ends of TLS certificates, and the warnings before the ends."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import httpx
from cryptography import x509

DAY = 86400.0
_SOON = 30 * DAY
"""Seconds before the end of a certificate from which every day has a warning."""

logger = logging.getLogger("secagg.http")


def end_of(certificate: Path | str | None) -> float | None:
    """Return the end of a file's first certificate, in seconds since 1970.

    None stands for no file, and for a certificate that OpenSSL accepts and the parser does not.
    """
    if certificate is not None:
        with suppress(ValueError):
            first, *_ = x509.load_pem_x509_certificates(Path(certificate).read_bytes())
            return first.not_valid_after_utc.timestamp()
    return None


def show_end(gauge: Callable[[str, str, Callable[[], float]], None], end: float) -> None:
    """Add the gauge of a server's certificate that ends at `end`, in seconds since 1970."""
    text = "Seconds until the server's TLS certificate ends."
    gauge("certificate_seconds_left", text, lambda: end - time.time())


def end_of_peer(response: httpx.Response) -> float | None:
    """Return the end of the certificate that a server showed, in seconds since 1970."""
    stream = response.extensions.get("network_stream")
    tls = stream and stream.get_extra_info("ssl_object")
    # empty without verification
    shown = (tls and tls.getpeercert()) or {}
    return ssl.cert_time_to_seconds(shown["notAfter"]) if "notAfter" in shown else None


def warning(whose: str, end: float, now: float, remedy: str = "renew it, and restart") -> str:
    """Return a warning if a certificate ends within 30 days, or else "".

    Parameters
    ----------
    whose : str
        Words for the certificate, such as "the certificate chain.pem".
    end, now : float
        Seconds since 1970.
    remedy : str
    """
    left, date = end - now, f"{datetime.fromtimestamp(end, UTC):%Y-%m-%d %H:%M} UTC"
    if left >= _SOON:
        return ""
    if left <= 0:
        return f"{whose} ended on {date}, so that nobody connects; {remedy}"
    return f"{whose} ends on {date}, in {int(left // DAY)} days; {remedy}"


async def watch(
    certificate: Path | str | None,
    now: Callable[[], float] = time.time,
    pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Log the warning of a server's own certificate at once and every day, until cancelled."""
    end = end_of(certificate)
    while end is not None:
        if text := warning(f"the certificate {certificate}", end, now()):
            logger.warning(text)
        await pause(DAY)
