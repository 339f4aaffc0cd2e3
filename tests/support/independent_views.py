"""Parameters and policies of the package, as the independent implementations take them."""

from __future__ import annotations

from dataclasses import fields

import independent_policy as independent
from secagg import Bounds, ClientPolicy, FixedPoint, Integers, RoundParams
from secagg.oneshot import OneShotPolicy


def as_mapping(params: RoundParams) -> dict[str, object]:
    """The parameters as the document lists them."""
    encoding = params.encoding
    if isinstance(encoding, FixedPoint):
        numbers = {
            "kind": "FixedPoint",
            "clip": encoding.clip,
            "fractional_bits": encoding.fractional_bits,
        }
    else:
        assert isinstance(encoding, Integers)
        numbers = {"kind": "Integers", "max": encoding.max}
    return {
        "n_clients": params.n_clients,
        "threshold": params.threshold,
        "length": params.length,
        "encoding": numbers,
        "modulus": params.ring.modulus,
        "neighbours": params.neighbours,
        "max_weight": params.max_weight,
        "session": params.session.hex(),
        "allow_two_clients": params.allow_two_clients,
        "count_clipped": params.count_clipped,
        "security": params.security,
    }


def as_policy(policy: ClientPolicy) -> independent.Policy:
    """The policy with its bounds as the document has them."""
    return independent.Policy(**_rules(policy))


def as_one_shot_policy(policy: OneShotPolicy) -> independent.OneShotPolicy:
    return independent.OneShotPolicy(**_rules(policy))


def _rules(policy: ClientPolicy | OneShotPolicy) -> dict[str, object]:
    values = {field.name: getattr(policy, field.name) for field in fields(policy)}
    return values | {"bounds": as_bounds(policy.bounds)}


def as_bounds(bounds: Bounds | None) -> tuple[bytes, int | None] | None:
    return None if bounds is None else (bounds.encoding.canonical(), bounds.max_weight)
