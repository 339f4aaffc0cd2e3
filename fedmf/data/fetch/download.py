"""Download of a file with pooch, over a restricted session of requests.

Every request and redirection uses https, or stays on this machine. The response must not be
compressed in transit or exceed `LARGEST` bytes. No password of ``~/.netrc`` is sent.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from fedmf.errors import DataError, optional

if TYPE_CHECKING:
    from requests import Response


LARGEST = 1024**3  # bytes; MovieLens 10M's archive has 66 MB
CHUNK = 1 << 16
SILENCE = 60.0  # seconds without a byte
REMEDY = (
    "try again, give another address with --url, or get the archive elsewhere, unpack it "
    "yourself, and set FEDMF_DATA to the folder that holds the unpacked one"
)

Progress = Callable[[int, int | None], None]
"""Function of the number of bytes so far, and the number of all bytes or None if unknown."""


def download(
    address: str, target: Path, *, md5: str | None = None, progress: Progress | None = None
) -> None:
    """Download the bytes at an address into a new file; after an error there is no file.

    Parameters
    ----------
    address : address with https, or with http on this machine
    target : path of the new file
    md5 : expected MD5 of the bytes in hexadecimal; None accepts any bytes
    progress : see `Progress`

    Raises
    ------
    DataError
        If an address is not allowed, or the response is an error, cut short, too long or has
        another MD5.
    MissingExtra
        If pooch is not installed.
    OSError
        If the file cannot be written.
    """
    pooch = optional("pooch", "fetches data sets")

    def write(url: str, file: str, _: object) -> None:
        so_far = 0
        with closing(_chunks(url)) as chunks, open(file, "wb") as sink:
            for chunk, total in chunks:
                so_far += len(chunk)
                if so_far > LARGEST:
                    raise DataError(
                        f"{url} sends more than {LARGEST} bytes: give another --url"
                    )
                sink.write(chunk)
                if progress is not None:
                    progress(so_far, total)

    _check_address(address)
    log = pooch.get_logger()
    level = log.level
    log.setLevel("ERROR")
    try:
        known = md5 and f"md5:{md5}"
        pooch.retrieve(address, known, target.name, target.parent, downloader=write)
    except ValueError as error:  # another checksum
        raise DataError(
            f"{address} is damaged or another edition ({error}): give another --url"
        ) from None
    finally:
        log.setLevel(level)


def _chunks(address: str) -> Generator[tuple[bytes, int | None]]:
    """Yield chunks of the bytes at an address, each with the announced number of all bytes."""
    from requests import RequestException, Session
    from requests.exceptions import SSLError

    with ExitStack() as stack:
        session = stack.enter_context(Session())
        http = {"http": ""}  # no proxy: http addresses are of this machine only
        settings = session.merge_environment_settings(address, http, True, None, None)
        session.trust_env = False  # else requests reads ~/.netrc, also for a redirection's host

        def check(answer: Response, **_: object) -> None:
            # the stack closes each response, also after an error
            _check_answer(stack.enter_context(answer))

        try:
            answer = session.get(
                address,
                headers={"Accept-Encoding": "identity"},
                hooks={"response": check},
                timeout=SILENCE,
                **settings,
            )
            answer.raise_for_status()
            length = answer.headers.get("Content-Length", "")
            for chunk in answer.iter_content(CHUNK):
                yield chunk, int(length) if length.isdecimal() else None
        except (OSError, ValueError) as error:
            # a malformed redirection raises ValueError
            remedy, bundle = REMEDY, settings["verify"]
            missing = not isinstance(error, RequestException | ValueError)
            if bundle is not True and (missing or isinstance(error, SSLError)):
                remedy = f"set REQUESTS_CA_BUNDLE, now {bundle}, to certificates or to nothing"
            raise DataError(f"{address} cannot be fetched: {error}; {remedy}") from None


def _check_answer(answer: Response) -> None:
    """Validate a response before the body is read or a redirection is followed."""
    if answer.is_redirect:
        there = urljoin(answer.url, answer.headers["Location"])
        _check_address(there)
        if urlsplit(answer.url).scheme == "https" and urlsplit(there).scheme != "https":
            raise DataError(
                f"{answer.url} redirects to {there!r}, which is not https: give another --url"
            )
    if answer.headers.get("Content-Encoding", "identity") != "identity":
        raise DataError(f"{answer.url} sends compressed bytes: give another --url")
    length = answer.headers.get("Content-Length", "")
    # int() rejects 5,000 digits
    if length.isdecimal() and (len(length) > 20 or int(length) > LARGEST):
        raise DataError(f"{answer.url} announces more than {LARGEST} bytes: give another --url")


def _check_address(address: str) -> None:
    """Raise DataError unless the address has https, or has http and is on this machine."""
    from urllib3.exceptions import LocationParseError
    from urllib3.util import parse_url  # as requests does: no second reading of an address

    try:
        parts = parse_url(address)
        host = (parts.host or "").strip("[]")
    except LocationParseError as error:
        raise DataError(
            f"the address {address!r} is malformed ({error}): give another --url"
        ) from None
    if parts.scheme == "https" and host:
        return
    if parts.scheme == "http" and _is_loopback(host):
        return
    raise DataError(f"the address {address!r} must begin with https://")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
