"""Parameters and encodings as the files have them, and their bytes with a field replaced."""

from dataclasses import fields

from independent_bounded import Bounded
from independent_noise import Noise
from independent_oneshot_params import Parameters as OneShotParameters
from independent_params import Parameters
from independent_sums import Encoding, FixedPoint


def described_encoding(encoding: Encoding) -> dict[str, object]:
    if isinstance(encoding, FixedPoint):
        return {"kind": "fixed point", "clip": encoding.clip, "fractional_bits": encoding.f}
    if isinstance(encoding, Bounded):
        return {"kind": "bounded", "norm": encoding.norm, "steps": encoding.steps}
    return {"kind": "integers", "max": encoding.max}


def described(params: Parameters | OneShotParameters) -> dict[str, object]:
    values = {field.name: getattr(params, field.name) for field in fields(params)}
    if isinstance(params.noise, Noise):
        values["noise"] = {"scaled": params.noise.scaled, "colluders": params.noise.colluders}
    return values | {"encoding": described_encoding(params.encoding)}


def with_fields(params: Parameters | OneShotParameters, changes: dict[str, bytes]) -> bytes:
    """P with some fields replaced by any other bytes."""
    return b"".join((params.layout() | changes).values())


def with_field(params: Parameters | OneShotParameters, name: str, value: bytes) -> bytes:
    return with_fields(params, {name: value})
