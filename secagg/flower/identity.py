"""Identity of a node in the active variant, from the node's configuration."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from flwr.app import UserConfig

from secagg._secrets import without_frames
from secagg.errors import ParameterError
from secagg.protocol import Identity, Registry

IDENTITY_KEY, REGISTRY_KEY = "secagg-identity", "secagg-registry"
"""Keys of the paths of a private key and of a registry in the configuration of a node."""


class NodeIdentity(NamedTuple):
    """Identity of a node, the registry of all clients, and the node's id in the registry."""

    client_id: int
    identity: Identity
    registry: Registry


@without_frames
def node_identity(config: UserConfig) -> NodeIdentity | None:
    """Return the identity in a node's configuration, or None if there is no identity.

    Parameters
    ----------
    config : mapping
        Configuration of the node: ``secagg-identity``, the path of a key file of ``secagg
        identity keygen``, and ``secagg-registry``, the path of a file of ``secagg identity
        register``. Both or none.

    Raises
    ------
    ParameterError
        One of the two is missing, is not the path of such a file, or the registry does not have
        the identity's public key.
    """
    given = {key: config.get(key) for key in (IDENTITY_KEY, REGISTRY_KEY)}
    if set(given.values()) == {None}:
        return None
    content = {}
    for key, path in given.items():
        if not isinstance(path, str):
            raise ParameterError(
                f"{key} is {path!r} in the node's configuration; set it to the path of a file, "
                f"as {IDENTITY_KEY} and {REGISTRY_KEY} are needed together"
            )
        try:
            content[key] = Path(path).read_bytes()
        except OSError as error:
            raise ParameterError(f"cannot read {key} {path}: {error.strerror}") from None
    identity = Identity.from_pem(content[IDENTITY_KEY])
    registry = Registry.from_json(content[REGISTRY_KEY])
    # the key decides, in the node's own registry: the server has no say in the id
    for client_id, public in registry.items():
        if public == identity.public:
            return NodeIdentity(client_id, identity, registry)
    raise ParameterError(
        f"{given[REGISTRY_KEY]} does not have the key of {given[IDENTITY_KEY]}; add "
        f"{identity.public.hex()} with secagg identity register"
    )


def no_identity() -> ParameterError:
    """Return the error of a node without an identity, in a sum that needs an identity."""
    return ParameterError(
        f"security is 'active', and the node's configuration has no {IDENTITY_KEY}; set it to "
        f"a key file of secagg identity keygen, and {REGISTRY_KEY} to the registry of all nodes"
    )
