"""Commands ``secagg identity``: keys of clients and aggregators, and the registry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from secagg.cli.addresses import as_key
from secagg.cli.console import App, Json, command, counted, examples
from secagg.cli.files import create_identity, read_keys, write_keys
from secagg.kit.table import as_json as to_json
from secagg.protocol import Registry
from secagg.protocol.client_ids import identify
from secagg.protocol.key_files import client_of

app = App(
    no_args_is_help=True, help="Make identities of clients, and the registry of the clients."
)

KEYGEN = examples("secagg identity keygen alice.pem")
REGISTER = examples("secagg identity register clients.json alice 3b6a27bc…")


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
    as_json: Json = False,
) -> None:
    """Add a client to a registry, or replace the client's key; a missing file is created.

    Make sure that the key is the client's: the holder of the key can send in the client's name.
    """
    with command():
        keys = read_keys(registry) if registry.exists() else {}
        keys[client_of(client)] = as_key(public, "HEX")
        # validates all keys and ids before the file changes
        count = len(Registry(keys))
        write_keys(registry, keys)
        document = {
            "registry": str(registry),
            "client": client,
            "id": identify(client_of(client))[0],
            "clients": count,
        }
        typer.echo(to_json(document) if as_json else f"{registry}: {counted(count)}")
