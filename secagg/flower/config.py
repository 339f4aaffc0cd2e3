"""Configuration of a node: the identity, and the demands on sums.

The demands on a sum are the strictest of the application and of the node's configuration. The
submitter of a run chooses the run's configuration, which has no part in identity and demands.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from flwr.app import UserConfig

from secagg import ClientPolicy
from secagg._secrets import without_frames
from secagg.errors import ParameterError
from secagg.oneshot import OneShotPolicy
from secagg.oneshot.helper_files import helpers_from_json
from secagg.protocol import Identity, Registry

FOLDER_KEY = "secagg-state-dir"
"""Key of the folder in the configuration of a node."""
EPSILON_KEY, DELTA_KEY = "secagg-epsilon", "secagg-delta"
"""Keys of the budget in the configuration of a node."""
IDENTITY_KEY, REGISTRY_KEY = "secagg-identity", "secagg-registry"
"""Keys of the paths of a private key and of a registry in the configuration of a node."""

_SMALLEST = {
    "secagg-min-clients": "min_clients",
    "secagg-min-cohort": "min_cohort",
    "secagg-min-threshold": "min_threshold",
}
_HELPER_THRESHOLD = "secagg-min-helper-threshold"
_ACTIVE, _HYBRID = "secagg-require-active", "secagg-require-hybrid"
_HELPERS = "secagg-helpers"
_KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    **dict.fromkeys((*_SMALLEST, _HELPER_THRESHOLD), (int, "an integer")),
    **dict.fromkeys((EPSILON_KEY, DELTA_KEY), ((int, float), "a number")),
    **dict.fromkeys((_ACTIVE, _HYBRID), (bool, "true or false")),
    _HELPERS: (str, "the path of a file"),
    # read and validated elsewhere
    **dict.fromkeys((FOLDER_KEY, IDENTITY_KEY, REGISTRY_KEY), (object, "")),
}


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
        A path is missing, or not the path of such a file, or the registry does not have the
        identity's public key.
    """
    given = {key: config.get(key) for key in (IDENTITY_KEY, REGISTRY_KEY)}
    if set(given.values()) == {None}:
        return None
    for key, path in given.items():
        if not isinstance(path, str):
            raise ParameterError(
                f"{key} is {path!r} in the node's configuration; set it to the path of a file, "
                f"as {IDENTITY_KEY} and {REGISTRY_KEY} are needed together"
            )
    identity = Identity.from_pem(_read(config, IDENTITY_KEY))
    registry = Registry.from_json(_read(config, REGISTRY_KEY))
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


def strictest(policy: ClientPolicy, config: UserConfig) -> ClientPolicy:
    """Return a policy that satisfies an application's policy and the node's configuration.

    Parameters
    ----------
    policy : ClientPolicy
        Policy of the application's code.
    config : mapping
        Configuration of the node: ``secagg-min-clients``, ``secagg-min-cohort`` and
        ``secagg-min-threshold``, int, ``secagg-require-active`` and ``secagg-require-hybrid``,
        bool. With ``secagg-identity`` the node is in active sums only.

    Raises
    ------
    ParameterError
        A key that begins with ``secagg-`` is unknown, or has a value of a wrong type or range.
    """
    _check_keys(config)
    stricter: dict[str, int | bool] = {}
    for key, name in _SMALLEST.items():
        if key in config:
            value, own = int(config[key]), getattr(policy, name)
            stricter[name] = value if own is None else max(own, value)
    stricter["require_active"] = _active(policy, config)
    stricter["require_hybrid"] = _hybrid(policy, config)
    return replace(policy, **stricter)  # type: ignore[arg-type]


def strictest_one_shot(policy: OneShotPolicy, config: UserConfig) -> OneShotPolicy:
    """Return a policy for one-shot sums that satisfies application and node.

    Parameters
    ----------
    policy : OneShotPolicy
        Policy of the application's code.
    config : mapping
        Configuration of the node: ``secagg-min-clients``, ``secagg-min-cohort`` and
        ``secagg-min-helper-threshold``, int, ``secagg-require-active`` and
        ``secagg-require-hybrid``, bool, and ``secagg-helpers``, the path of a file of helpers.

    Raises
    ------
    ParameterError
        See `strictest`. Or neither application nor node names the trusted helpers.
    """
    _check_keys(config)
    helpers = policy.helpers
    if _HELPERS in config:
        # the server relays the parameters, and could have chosen the helpers' keys
        listed = frozenset(one.ed25519 for one in helpers_from_json(_read(config, _HELPERS)))
        helpers = listed if helpers is None else helpers & listed
    if helpers is None:
        raise ParameterError(
            f"this node trusts no helpers; set {_HELPERS} to a file of them, or pass "
            "OneShotMod(OneShotPolicy(helpers={the Ed25519 key of each}))"
        )
    # the list of a one-shot sum is its cohort, so both keys are demands on min_clients
    keys = [key for key in ("secagg-min-clients", "secagg-min-cohort") if key in config]
    return replace(
        policy,
        min_threshold=max(policy.min_threshold, int(config.get(_HELPER_THRESHOLD, 1))),
        min_clients=max(policy.min_clients, *(int(config[key]) for key in keys), 2),
        require_active=_active(policy, config),
        require_hybrid=_hybrid(policy, config),
        helpers=helpers,
    )


def _active(policy: ClientPolicy | OneShotPolicy, config: UserConfig) -> bool:
    """Return True if a node is in active sums only."""
    # a semi-honest sum of signing nodes would be a way around what their keys are for
    return policy.require_active or IDENTITY_KEY in config or bool(config.get(_ACTIVE, False))


def _hybrid(policy: ClientPolicy | OneShotPolicy, config: UserConfig) -> bool:
    """Return True if a node is in sums of suite hybrid only."""
    return policy.require_hybrid or bool(config.get(_HYBRID, False))


def _check_keys(config: UserConfig) -> None:
    """Raise `ParameterError` for an unknown key of this package, or a value of another type."""
    for key, value in config.items():
        if not key.startswith("secagg-"):
            continue
        if key not in _KINDS:
            raise ParameterError(
                f"the node's configuration has the unknown key {key!r}; take one of "
                f"{', '.join(_KINDS)}"
            )
        kind, name = _KINDS[key]
        # a bool is an int, too
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ParameterError(f"{key} is {value!r} in the node's configuration, not {name}")


def _read(config: UserConfig, key: str) -> bytes:
    """Return the content of a file that the node's configuration names."""
    path = Path(str(config[key]))
    try:
        return path.read_bytes()
    except OSError as error:
        raise ParameterError(
            f"cannot read {path}: {error.strerror}; set {key} to a file that the node can read"
        ) from None
