"""Parameters and policies of the package, as the independent implementations take them."""

from __future__ import annotations

from dataclasses import fields

import independent_bounded
import independent_client
import independent_noise
import independent_policy as independent
import independent_sums
from secagg import Bounded, Bounds, ClientPolicy, FixedPoint, Integers, RoundParams
from secagg.oneshot import OneShotPolicy


def as_parameters(params: RoundParams) -> independent_client.Parameters:
    """The parameters as the document lists them."""
    encoding = params.encoding
    made: independent_sums.Encoding
    if isinstance(encoding, FixedPoint):
        made = independent_sums.FixedPoint(encoding.clip, encoding.fractional_bits)
    elif isinstance(encoding, Bounded):
        made = independent_bounded.Bounded(encoding.norm, encoding.steps)
    else:
        assert isinstance(encoding, Integers)
        made = independent_sums.Integers(encoding.max)
    names = [field.name for field in fields(independent_client.Parameters)]
    values = {name: getattr(params, name) for name in names if name != "modulus"}
    if params.min_survivors == params.least:
        values["min_survivors"] = None
    if params.noise is not None:
        noise = params.noise
        values["noise"] = independent_noise.Noise(noise.scaled, noise.colluders)
    return independent_client.Parameters(
        **(values | {"encoding": made, "modulus": params.ring.modulus})
    )


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
