"""Commands ``secagg identity``: keys of clients and aggregators, and the registry."""

from __future__ import annotations

import os
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from secagg._files import locked
from secagg._printable import printable
from secagg.cli.addresses import as_key
from secagg.cli.console import App, Json, command, counted, examples, flag
from secagg.cli.files import create_identity, read_keys, write_keys
from secagg.errors import ParameterError
from secagg.kit.table import as_json as to_json
from secagg.protocol import Registry
from secagg.protocol.client_ids import identify
from secagg.protocol.key_files import client_of

app = App(
    no_args_is_help=True, help="Make identities of clients, and the registry of the clients."
)

KEYGEN = examples("secagg identity keygen alice.pem")
REGISTER = examples(
    "secagg identity register clients.json alice 3b6a27bc…",
    "secagg identity register clients.json alice 77c1e05a… --replace",
)


@app.command(epilog=KEYGEN)
def keygen(
    key: Annotated[Path, typer.Argument(metavar="KEY", help="New file, of mode 600.")],
    as_json: Json = False,
) -> None:
    """Draw an identity, write its private key, and print its public key.

    The private key stays on this machine, and is as secret as a password.
    """
    with command():
        public = create_identity(key).public.hex()
        typer.echo(to_json({"key": str(key), "ed25519": public}) if as_json else public)


@app.command(epilog=REGISTER)
def register(
    registry: Annotated[Path, typer.Argument(metavar="REGISTRY", help="JSON file.")],
    client: Annotated[str, typer.Argument(help="Name or id of the client.")],
    public: Annotated[str, typer.Argument(metavar="HEX", help="Public key of the client.")],
    replace: Annotated[
        bool, flag("--replace", "Replace the key of a client that the registry has.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Add a client to a registry; a missing file is created.

    Make sure that the key is the client's: the holder of the key can send in the client's name.
    A client of the registry keeps its key without --replace.
    """
    with command():
        name, key = client_of(client), as_key(public, "HEX")
        registry.parent.mkdir(parents=True, exist_ok=True)
        # or of two commands at once, the second would drop the client of the first
        with locked(registry.parent) if hasattr(os, "O_DIRECTORY") else nullcontext():
            keys = read_keys(registry) if registry.exists() else {}
            change = _change(client, keys.get(name), key, replace=replace)
            keys[name] = key
            # validates all keys and ids before the file changes
            count = len(Registry(keys))
            write_keys(registry, keys)
        document = {
            "registry": str(registry),
            "client": client,
            "id": identify(name)[0],
            "change": change,
            "clients": count,
        }
        text = f"{registry}: {change} {printable(client)}; {counted(count)}"
        typer.echo(to_json(document) if as_json else text)


def _change(client: str, known: bytes | None, key: bytes, *, replace: bool) -> str:
    """Return "added", "replaced" or "unchanged"; raise `ParameterError` for another change."""
    if known is None and replace:
        # a misspelt name would leave the old key valid
        raise ParameterError(
            f"the registry has no client {client!r} whose key could be replaced; check the "
            "name, or leave --replace out to add the client"
        )
    if known is None:
        return "added"
    if known == key:
        return "unchanged"
    if not replace:
        raise ParameterError(
            f"client {client!r} is registered with the key {known.hex()}; pass --replace to "
            "put the new key in its place"
        )
    return "replaced"
