"""One file over https, whole or not at all: nothing is believed that was not checked."""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
import urllib.error
import urllib.request
from collections.abc import Callable
from email.message import Message
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from fedmf.errors import DataError

__all__ = ["LARGEST", "Progress", "download"]

LARGEST = 1024**3  # bytes; MovieLens 10M's archive has 66 MB
CHUNK = 1 << 16
SILENCE = 60.0  # seconds without a byte

# Called with the bytes so far and, where the server tells it, how many there will be.
Progress = Callable[[int, int | None], None]


def download(
    address: str, target: Path, *, md5: str | None = None, progress: Progress | None = None
) -> None:
    """Write what is at an address to a file.

    Parameters
    ----------
    address
        https, or http on this very machine.
    target
        The file, which must not exist. After an error it may hold a part, to be thrown away.
    md5
        What the bytes must hash to; None accepts any.

    Raises
    ------
    DataError
        If the address is not allowed or there is no good answer, if fewer or more bytes come
        than announced, or others than expected, or if they cannot be written.
    """
    _refuse_unsafe(address)
    proxies = {kind: at for kind, at in urllib.request.getproxies().items() if kind == "https"}
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies), _SafeRedirects())
    try:
        with opener.open(address, timeout=SILENCE) as answer:
            length = answer.headers.get("Content-Length", "")
            announced = _announced(address, length)
            digest = _copy(address, answer, announced, target, progress)
    except urllib.error.HTTPError as error:
        error.close()
        raise DataError(
            f"{address} answered {error.code} {error.reason}; is the address still right? "
            "another one can be given with --url"
        ) from None
    except ValueError as error:
        raise DataError(f"{address} leads to what is no address: {error}") from None
    except urllib.error.URLError as error:
        raise DataError(
            f"{address} cannot be reached: {error.reason}; try again, give another address "
            "with --url, or get the archive elsewhere, unpack it yourself, and set FEDMF_DATA "
            "to the folder that holds the unpacked one"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise DataError(f"{address} broke off: {error}; fetch it again") from None
    if md5 is not None and digest != md5:
        raise DataError(
            f"what {address} sent has the md5 {digest}, not {md5}: it was damaged on the way "
            "or is another edition; nothing is kept"
        )


def _announced(address: str, length: str) -> int | None:
    if not length.isdecimal():
        return None
    if len(length.lstrip("0")) > len(str(LARGEST)):  # int() itself refuses thousands of digits
        raise DataError(f"{address} announces more than {LARGEST} bytes: that is no data set")
    return int(length)


def _copy(
    address: str,
    answer: IO[bytes],
    announced: int | None,
    target: Path,
    progress: Progress | None,
) -> str:
    """Copy the answer to the file; return its md5."""
    # Not for secrecy: GroupLens publishes md5 sums, and they are there to find damage.
    digest = hashlib.md5(usedforsecurity=False)
    so_far = 0
    try:
        file = target.open("xb")
    except OSError as error:
        raise _unwritable(target, error) from None
    with file:
        while chunk := answer.read(CHUNK):
            so_far += len(chunk)
            if so_far > LARGEST:
                raise DataError(
                    f"{address} sends more than {LARGEST} bytes: that is no data set"
                )
            digest.update(chunk)
            try:
                file.write(chunk)
                file.flush()
            except OSError as error:
                raise _unwritable(target, error) from None
            if progress is not None:
                progress(so_far, announced)
    if announced is not None and so_far != announced:
        raise DataError(
            f"{address} broke off after {so_far} of {announced} bytes; fetch it again"
        )
    return digest.hexdigest()


def _unwritable(target: Path, error: OSError) -> DataError:
    return DataError(
        f"{target} cannot be written: {error.strerror}; make room, or set FEDMF_CACHE to "
        "another folder"
    )


def _refuse_unsafe(address: str) -> None:
    """Allow https, and http to this machine, where nobody is on the line."""
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
    except ValueError as error:
        raise DataError(f"{address!r} is not an address: {error}") from None
    if parts.scheme == "https" and host:
        return
    if parts.scheme == "http" and _is_loopback(host):
        return
    raise DataError(f"{address!r} is refused: the address must begin with https://")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _SafeRedirects(urllib.request.HTTPRedirectHandler):
    """Follow a redirection only to where the address could have led, and never out of https."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> urllib.request.Request | None:
        _refuse_unsafe(newurl)
        if req.type == "https" and urlsplit(newurl).scheme != "https":
            raise DataError(f"{req.full_url} leads to {newurl!r}, which is not https: refused")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]
