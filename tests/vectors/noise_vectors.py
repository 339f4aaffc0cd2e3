"""The vectors of docs/protocol.md §4.5 and §5.14: bounded vectors, noise of clients."""

import math
import struct

from draws import draw

from independent_bounded import Bounded, Rotation
from independent_noise import law, scaled_share, shares
from independent_primitives import ids, sha256
from independent_streams import prg

EXAMPLE = Bounded(2.0, 100)


def noise() -> dict[str, object]:
    sizes = []
    for sigma, m, c in (
        (822_528, 900, 50), (100_000, 1000, 998), (2**48, 2**20, 8), (2048, 4, 0),
        (2049, 4, 0), (1448, 2, 0), (2046, 4, 0), (2**37, 4, 0), (2**37 + 1, 4, 0),
    ):  # fmt: skip
        p = scaled_share(sigma, m, c)
        sizes.append({"sigma": sigma, "survivors": m, "colluders": c,
                      "p": p if 2**10 <= p <= 2**36 else None})  # fmt: skip
    laws, samples = [], []
    for p in (1024, 1025, 1228, 1536, 28_160, 10**9 + 7, 2**36):
        k, table, scale, shift = law(p)
        laws.append({"p": p, "k": k, "table": table, "scale": scale, "shift": shift})
        for key in (bytes(range(16)), draw(f"noise {p}", 16)):
            samples.append({"p": p, "key": key, "samples": shares(key, p, 24)})
    long = shares(key, p, 8200)
    samples.append({
        "p": p, "key": key, "samples": long[:3], "from_4090": long[4090:4102],
        "last": long[-12:], "count": len(long), "sha256": sha256(ids(y % 2**64 for y in long)),
    })  # fmt: skip
    return {"shares": sizes, "laws": laws, "samples": samples}


def bounded() -> dict[str, object]:
    cases = [
        _case("one element", EXAMPLE, b"", [1.5]),
        _case("no padding", EXAMPLE, b"round 1", _random("no padding", 8, 1.0)),
        _case("another round", EXAMPLE, b"round 2", _random("no padding", 8, 1.0)),
        _case("padded", EXAMPLE, b"", _random("padded", 100, 1.9)),
        _case("longer than C", EXAMPLE, b"\xff", _random("longer", 33, 1e6)),
        _case("a norm of C", Bounded(5.0, 7), b"", [3.0, 4.0]),
        _case("C and rounding errors", Bounded(5.0, 7), b"", [3.0, 4.0 + 2.0**-50]),
        _case("a single element", EXAMPLE, b"1-hot", [0.0] * 20 + [2.0] + [0.0] * 43),
        _case("zeros", EXAMPLE, b"", [0.0, -0.0, 5e-324, -1e-308, 2.0**-301, 0.0]),
        _case("the least C", Bounded(2.0**-100, 2**30), b"", [2.0**-300, -(2.0**-120)]),
        _case("beyond 2^300", EXAMPLE, b"", [1e308, -1e308, 1.0]),
        _case("the largest C", Bounded(2.0**100, 1), b"", [1e29, -3e29, 2.0]),
        _case("the most steps", Bounded(0.1, 2**30), b"many", _random("many", 200, 0.09)),
        _case("one step", Bounded(1.0, 1), b"few", _random("few", 40, 1.0)),
        _case("counted", EXAMPLE, b"", _random("counted", 31, 1.0), counted=True),
        _case("counted and clipped", EXAMPLE, b"", _random("too long", 32, 3.0), counted=True),
        _case("counted, one element", EXAMPLE, b"", [2.5], counted=True),
        _case("eight words of signs", EXAMPLE, bytes(64), _random("signs", 300, 2.5)),
    ]  # fmt: skip
    refused = (("NaN", math.nan), ("infinity", math.inf), ("minus infinity", -math.inf))
    return {
        "encodings": cases,
        "decodings": [
            _decoding(2**16, counted=False),
            _decoding(65521, counted=True),
            _decoding(2**40, counted=True),
        ],
        "refused": [{"name": name, "f64le": struct.pack("<2d", 0, x)} for name, x in refused],
    }


def _random(name: str, count: int, norm: float) -> list[float]:
    """A vector of about this norm."""
    words = prg(draw(f"bounded {name}", 16), count, 2**64)
    return [(word / 2**63 - 1) * norm * math.sqrt(3 / count) for word in words]


def _described(rotation: Rotation) -> dict[str, object]:
    return {
        "norm": rotation.of.norm, "steps": rotation.of.steps, "session": rotation.session,
        "length": rotation.d, "count_clipped": rotation.counted,
        "elements": rotation.D, "largest": rotation.most, "squared_norm": rotation.B,
    }  # fmt: skip


def _case(
    name: str, of: Bounded, session: bytes, vector: list[float], *, counted: bool = False
) -> dict[str, object]:
    rotation, key = Rotation(of, session, len(vector), counted), draw(f"bounded key {name}", 16)
    integers, clipped = rotation.integers(vector, key), rotation.scaled(vector)[1]
    assert sum(q * q for q in integers) <= rotation.B, name
    return _described(rotation) | {
        "name": name, "vector": vector, "key": key, "integers": integers, "clipped": clipped,
    }  # fmt: skip


def _decoding(modulus: int, *, counted: bool) -> dict[str, object]:
    rotation = Rotation(EXAMPLE, b"decoding", 13, counted)
    words = prg(draw(f"bounded decoding {modulus}", 16), rotation.D, modulus)
    elements = [*words[:-4], 0, (modulus - 1) // 2, (modulus - 1) // 2 + 1, modulus - 1]
    integers = [v if v <= (modulus - 1) // 2 else v - modulus for v in elements]
    values, count = rotation.decoded(integers)
    return _described(rotation) | {
        "modulus": modulus, "sum": ids(elements), "integers": integers, "values": values,
        "clipped_vectors": count,
    }  # fmt: skip
