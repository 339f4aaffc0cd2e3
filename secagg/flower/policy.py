"""Demands of a node on a sum: the strictest of its application and of its configuration.

The run configuration is the submitter's and has no part in it.
"""

from __future__ import annotations

from dataclasses import replace

from flwr.app import UserConfig

from secagg import ClientPolicy
from secagg.errors import ParameterError
from secagg.flower.identity import IDENTITY_KEY, REGISTRY_KEY
from secagg.flower.state import FOLDER_KEY

__all__ = ["strictest"]

_SMALLEST = {
    "secagg-min-clients": "min_clients",
    "secagg-min-cohort": "min_cohort",
    "secagg-min-threshold": "min_threshold",
}
_ACTIVE = "secagg-require-active"
_OTHERS = (FOLDER_KEY, IDENTITY_KEY, REGISTRY_KEY)


def strictest(policy: ClientPolicy, config: UserConfig) -> ClientPolicy:
    """Return a policy that satisfies an application's policy and the node's configuration.

    Parameters
    ----------
    policy : ClientPolicy
        Policy of the application's code.
    config : mapping
        Configuration of the node: ``secagg-min-clients``, ``secagg-min-cohort`` and
        ``secagg-min-threshold``, int, and ``secagg-require-active``, bool.

    Raises
    ------
    ParameterError
        A key that begins with ``secagg-`` is unknown, or its value is of a wrong type or range.
    """
    stricter: dict[str, int | bool] = {}
    for key, value in config.items():
        if key in _SMALLEST and isinstance(value, int) and not isinstance(value, bool):
            own = getattr(policy, _SMALLEST[key])
            stricter[_SMALLEST[key]] = value if own is None else max(own, value)
        elif key == _ACTIVE and isinstance(value, bool):
            stricter["require_active"] = policy.require_active or value
        elif key in _SMALLEST or key == _ACTIVE:
            kind = "true or false" if key == _ACTIVE else "an integer"
            raise ParameterError(f"{key} is {value!r} in the node's configuration, not {kind}")
        elif key.startswith("secagg-") and key not in _OTHERS:
            known = ", ".join([*_SMALLEST, _ACTIVE, *_OTHERS])
            raise ParameterError(
                f"the node's configuration has the unknown key {key!r}; take one of {known}"
            )
    return replace(policy, **stricter)  # type: ignore[arg-type]
