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
RegistryFile = Annotated[
    Path, typer.Argument(metavar="REGISTRY", help="JSON file with all clients' keys.")
]
State = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="State of the session; a killed server goes on with this state.",
    ),
]
Name = Annotated[str, typer.Option(help="Name of the session, new for each session.")]
SecurityOption = Annotated[
    str, typer.Option("--security", metavar="semi-honest|active", help="Security of the sums.")
]
Deadline = Annotated[float, typer.Option(help="Seconds for each phase.")]
AggregatorKey = Annotated[
    Path | None,
    typer.Option(
        "--identity", metavar="FILE", help="Private key of the aggregator, with --helpers."
    ),
]
OperatorPort = Annotated[
    int, typer.Option(help="Port of status page and metrics, on loopback; 0 for any.")
]
Url = Annotated[str, typer.Argument(metavar="URL", help="Server of the session.")]
Client = Annotated[str, typer.Option(help="Name or id of this client.")]
ClientIdentity = Annotated[
    Path,
    typer.Option("--identity", metavar="FILE", help="Private key, of secagg identity keygen."),
]
Members = Annotated[
    Path | None,
    typer.Option(
        "--registry", metavar="FILE", help="Registry of all clients, if security is active."
    ),
]
LeastClients = Annotated[
    int | None,
    typer.Option(
        help="Least number of clients in a sum; this client is in no sum of fewer. Without "
        "helpers, the threshold must reach the number.",
        show_default="3",
    ),
]
Colluders = Annotated[
    int | None,
    typer.Option(
        help="Most clients that this client expects to collude with the server; this client is "
        "in no sum that is unsafe with so many, or whose noise is for fewer.",
        show_default="a fifth of all clients",
    ),
]
Patience = Annotated[
    float, typer.Option(help="Seconds to wait for a server that does not answer.")
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
