"""Demands of a node on a sum: the strictest of the application and of the node's configuration.

The submitter of a run chooses the run configuration, so that has no part in the demands.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from flwr.app import UserConfig

from secagg import ClientPolicy
from secagg.errors import ParameterError
from secagg.flower.identity import IDENTITY_KEY, REGISTRY_KEY
from secagg.flower.state import FOLDER_KEY
from secagg.oneshot import OneShotPolicy
from secagg.oneshot.helper_files import helpers_from_json

_SMALLEST = {
    "secagg-min-clients": "min_clients",
    "secagg-min-cohort": "min_cohort",
    "secagg-min-threshold": "min_threshold",
}
_HELPER_THRESHOLD = "secagg-min-helper-threshold"
_ACTIVE = "secagg-require-active"
_HELPERS = "secagg-helpers"
_KINDS: dict[str, tuple[type, str]] = {
    **dict.fromkeys((*_SMALLEST, _HELPER_THRESHOLD), (int, "an integer")),
    _ACTIVE: (bool, "true or false"),
    _HELPERS: (str, "the path of a file"),
    # validated where they are read
    **dict.fromkeys((FOLDER_KEY, IDENTITY_KEY, REGISTRY_KEY), (object, "")),
}


def strictest(policy: ClientPolicy, config: UserConfig) -> ClientPolicy:
    """Return a policy that satisfies an application's policy and the node's configuration.

    Parameters
    ----------
    policy : ClientPolicy
        Policy of the application's code.
    config : mapping
        Configuration of the node: ``secagg-min-clients``, ``secagg-min-cohort`` and
        ``secagg-min-threshold``, int, and ``secagg-require-active``, bool. With
        ``secagg-identity`` the node is in active sums only.

    Raises
    ------
    ParameterError
        A key that begins with ``secagg-`` is unknown, or has a value of a wrong type or range.
    """
    _check_keys(config)
    stricter: dict[str, int | bool] = {}
    for key, name in _SMALLEST.items():
        if key in config:
            value, own = _number(config, key), getattr(policy, name)
            stricter[name] = value if own is None else max(own, value)
    stricter["require_active"] = _active(policy, config)
    return replace(policy, **stricter)  # type: ignore[arg-type]


def strictest_one_shot(policy: OneShotPolicy, config: UserConfig) -> OneShotPolicy:
    """Return a policy for one-shot sums that satisfies application and node.

    Parameters
    ----------
    policy : OneShotPolicy
        Policy of the application's code.
    config : mapping
        Configuration of the node: ``secagg-min-clients``, ``secagg-min-cohort`` and
        ``secagg-min-helper-threshold``, int, ``secagg-require-active``, bool, and
        ``secagg-helpers``, the path of a file of helpers.

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
    threshold = _number(config, _HELPER_THRESHOLD) if _HELPER_THRESHOLD in config else 1
    return replace(
        policy,
        min_threshold=max(policy.min_threshold, threshold),
        min_clients=max(policy.min_clients, *(_number(config, key) for key in keys), 2),
        require_active=_active(policy, config),
        helpers=helpers,
    )


def _active(policy: ClientPolicy | OneShotPolicy, config: UserConfig) -> bool:
    """Return True if a node is in active sums only."""
    # a semi-honest sum of signing nodes would be a way around what their keys are for
    return policy.require_active or IDENTITY_KEY in config or bool(config.get(_ACTIVE, False))


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
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is int):
            raise ParameterError(f"{key} is {value!r} in the node's configuration, not {name}")


def _number(config: UserConfig, key: str) -> int:
    return int(config[key])


def _read(config: UserConfig, key: str) -> bytes:
    """Return the content of a file that the node's configuration names."""
    path = Path(str(config[key]))
    try:
        return path.read_bytes()
    except OSError as error:
        raise ParameterError(
            f"cannot read {path}: {error.strerror}; set {key} to a file that the node can read"
        ) from None
