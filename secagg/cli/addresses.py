"""Options of the commands that serve or call others over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secagg.cli.console import file_option, flag
from secagg.cli.files import read
from secagg.errors import ParameterError

Host = Annotated[str, typer.Option(help="Address to listen on.")]
Port = Annotated[int, typer.Option(help="Port to listen on, 0 for any free one.")]
CertificateFile = Annotated[Path | None, file_option("Certificate, in PEM.", "--certificate")]
KeyFile = Annotated[
    Path | None, file_option("Private key of the certificate, in PEM.", "--key")
]
PlainHttp = Annotated[
    bool,
    flag(
        "--allow-plain-http", "Use no TLS beyond loopback, where a proxy or a tunnel encrypts."
    ),
]
Authority = Annotated[
    Path | None,
    file_option("Certificates to trust, in PEM.", shown="the certificates of the system"),
]
HelpersFile = Annotated[
    Path | None,
    file_option(
        'JSON array of helpers: "url", and what secagg helper keygen --json prints.',
        "--helpers",
    ),
]


def as_certificate(certificate: Path | None, key: Path | None) -> tuple[Path, Path] | None:
    """Return the files of a certificate and a key, or None if neither is given."""
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ParameterError("--certificate and --key need each other; give both or neither")
    for path in (certificate, key):
        # uvicorn's error would not name the file
        read(path)
    return certificate, key


def as_key(text: str, option: str) -> bytes:
    """Return a public key of 32 bytes from hexadecimal."""
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise ParameterError(
            f"{option} must be an Ed25519 key, 64 hexadecimal digits, not {text[:80]!r}"
        )
    return key
