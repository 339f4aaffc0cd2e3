"""Download of one file by requests, which pooch brings, within limits of its own.

Every request and redirection goes over https, or to this machine. The answer may not be
compressed in transit, nor exceed `LARGEST` bytes. No password of ``~/.netrc`` is sent.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from fedmf.errors import DataError, MissingExtra

if TYPE_CHECKING:
    from requests import Response, Session

__all__ = ["LARGEST", "Progress", "download"]

LARGEST = 1024**3  # bytes; MovieLens 10M's archive has 66 MB
CHUNK = 1 << 16
SILENCE = 60.0  # seconds without a byte

Progress = Callable[[int, int | None], None]
"""Called with the bytes so far and, if the server announces it, their number."""


def download(
    address: str, target: Path, *, md5: str | None = None, progress: Progress | None = None
) -> None:
    """Write the bytes at an address to a file.

    Parameters
    ----------
    address
        https, or http to this machine.
    target
        The file, which must not exist. After an error it may hold a part.
    md5
        The expected MD5 of the bytes; None accepts any.

    Raises
    ------
    DataError
        If an address is not allowed, there is no good answer, it breaks off, or its bytes are
        too many or not the expected ones.
    MissingExtra
        If pooch is not installed.
    OSError
        If the file cannot be written.
    """
    try:
        import pooch
        from requests import RequestException, Session
    except ModuleNotFoundError:
        raise MissingExtra(
            "fetching needs pooch, which is not installed: pip install 'secagg[fedmf]'"
        ) from None
    _check_address(address)
    with target.open("xb") as file, Session() as session:
        sink = _Sink(file, progress)
        http = {"http": ""}  # takes no proxy: it goes to this machine alone
        settings = session.merge_environment_settings(address, http, True, None, None)
        session.trust_env = False  # else requests reads ~/.netrc, also for a redirection's host
        try:
            answer = _answer(session, address, sink, settings)
            answer.raise_for_status()
            for chunk in answer.iter_content(CHUNK):
                sink.write(chunk)
        except (RequestException, ValueError) as error:  # ValueError: a malformed redirection
            raise DataError(
                f"{address} cannot be fetched: {error}; try again, give another address with "
                "--url, or get the archive elsewhere, unpack it yourself, and set FEDMF_DATA "
                "to the folder that holds the unpacked one"
            ) from None
        finally:
            sink.close()
    found = md5 and pooch.file_hash(str(target), alg="md5")
    if found != md5:
        raise DataError(
            f"the archive of {address} has the md5 {found}, not {md5}: it was damaged on the "
            "way or is another edition; nothing is kept"
        )


def _answer(
    session: Session, address: str, sink: _Sink, settings: MutableMapping[str, Any]
) -> Response:
    from requests import RequestException
    from requests.exceptions import SSLError

    try:
        return session.get(
            address,
            headers={"Accept-Encoding": "identity"},
            hooks={"response": sink.check},
            timeout=SILENCE,
            **settings,
        )
    except OSError as error:  # requests' own, or that the bundle cannot be opened
        own, bundle = isinstance(error, RequestException), settings["verify"]
        if own and (bundle is True or not isinstance(error, SSLError)):
            raise
        raise DataError(
            f"{address} cannot be fetched with the certificates in {bundle!r}: {error}; set "
            "REQUESTS_CA_BUNDLE to a file of certificates, or to nothing"
        ) from error


class _Sink:
    """The file that a download is written to, and the checks of each answer."""

    def __init__(self, file: IO[bytes], progress: Progress | None) -> None:
        self._file = file
        self._progress = progress
        self._answer: Response | None = None
        self._total: int | None = None

    def check(self, answer: Response, **_: object) -> None:
        """Validate an answer before it is read or its redirection is followed."""
        self._answer, self._total = answer, None
        if answer.is_redirect:
            there = urljoin(answer.url, answer.headers["Location"])
            _check_address(there)
            if urlsplit(answer.url).scheme == "https" and urlsplit(there).scheme != "https":
                raise DataError(f"{answer.url} leads to {there!r}, which is not https")
        if answer.headers.get("Content-Encoding", "identity") != "identity":
            raise DataError(f"{answer.url} sends compressed bytes that nobody asked for")
        length = answer.headers.get("Content-Length", "")
        if length.isdecimal():
            if len(length.lstrip("0")) > len(str(LARGEST)):  # int() rejects 5,000 digits
                raise DataError(f"{answer.url} announces more than {LARGEST} bytes")
            self._total = int(length)

    def write(self, chunk: bytes) -> None:
        """Write a chunk and report it."""
        so_far = self._file.tell() + len(chunk)
        if so_far > LARGEST:
            raise DataError(f"the server sends more than {LARGEST} bytes: that is no data set")
        self._file.write(chunk)
        if self._progress is not None:
            self._progress(so_far, self._total)

    def close(self) -> None:
        """Close the connection, whatever became of the answer."""
        if self._answer is not None:
            self._answer.close()


def _check_address(address: str) -> None:
    """Validate https, or http to this machine, where nobody is on the line."""
    from urllib3.exceptions import LocationParseError
    from urllib3.util import parse_url  # as requests does: no second reading of an address

    try:
        parts = parse_url(address)
        host = (parts.host or "").strip("[]")
    except LocationParseError as error:
        raise DataError(f"{address!r} is not an address: {error}") from None
    if parts.scheme == "https" and host:
        return
    if parts.scheme == "http" and _is_loopback(host):
        return
    raise DataError(f"{address!r} is rejected: the address must begin with https://")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
