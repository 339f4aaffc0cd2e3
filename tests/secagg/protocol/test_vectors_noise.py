"""Golden vectors of docs/protocol.md §4.5 and §5.14: bounded vectors, noise of clients."""

from __future__ import annotations

import hashlib
from itertools import chain

import numpy as np
import pytest

from secagg.encoding import Ring
from secagg.encoding.bounded import Bounded, Rotated
from secagg.errors import ParameterError
from secagg.protocol.noise import Share
from vectors_reader import Fed, Vector, b, lanes, load


def rotated_of(case: Vector) -> Rotated:
    made = Bounded(case["norm"], case["steps"])
    return made.of_round(b(case["session"]), case["length"], counts=case["count_clipped"])


def drawn(share: Share, key: str, count: int) -> list[int]:
    return list(chain.from_iterable(block.tolist() for block in share.blocks(b(key), 0, count)))


@pytest.mark.parametrize("case", load("bounded")["encodings"], ids=lambda c: c["name"])
def test_check27_bounded_vectors(case) -> None:
    rotated = rotated_of(case)
    sizes = rotated.elements, rotated.max_encoded, rotated.squared_norm
    assert sizes == tuple(int(case[name]) for name in ("elements", "largest", "squared_norm"))
    vector = np.array(case["vector"], np.float64)
    integers, clipped = rotated.integers(vector, Fed([case["key"]]))
    assert integers.tolist() == case["integers"]
    assert clipped == case["clipped"]


@pytest.mark.parametrize("case", load("bounded")["decodings"], ids=lambda c: c["modulus"])
def test_check27_sums_of_bounded_vectors(case) -> None:
    rotated, ring = rotated_of(case), Ring(int(case["modulus"]))
    floats, integers = rotated.decode(lanes(case["sum"], ring), ring)
    assert integers.tolist() == [int(x) for x in case["integers"]]
    more = [case["clipped_vectors"]] if case["count_clipped"] else []
    assert floats.tolist() == [*case["values"], *more]


@pytest.mark.parametrize("case", load("bounded")["refused"], ids=lambda c: c["name"])
def test_check27_rejected_bounded_vectors(case) -> None:
    vector = np.frombuffer(b(case["f64le"]), dtype="<f8")
    with pytest.raises(ParameterError):
        Bounded(1.0, 8).of_round(b"", vector.size).integers(vector, Fed(["00" * 16]))


@pytest.mark.parametrize("case", load("noise")["shares"])
def test_check27_share_of_the_noise(case) -> None:
    numbers = int(case["sigma"]), case["survivors"], case["colluders"]
    if case["p"] is None:
        with pytest.raises(ParameterError):
            Share.of(*numbers)
        return
    assert Share.of(*numbers).scaled == int(case["p"])


@pytest.mark.parametrize("case", load("noise")["laws"], ids=lambda c: c["p"])
def test_check27_law_of_a_share(case) -> None:
    table, *numbers = Share(int(case["p"])).law
    assert [high << 64 | low for high, low in table.tolist()] == [int(x) for x in case["table"]]
    assert numbers == [int(case[name]) for name in ("k", "scale", "shift")]


@pytest.mark.parametrize("case", load("noise")["samples"], ids=lambda c: c["p"])
def test_check27_samples_of_a_share(case) -> None:
    samples = drawn(Share(int(case["p"])), case["key"], case.get("count", 24))
    assert samples[: len(case["samples"])] == case["samples"]
    if "count" in case:
        assert samples[4090:4102] == case["from_4090"]
        assert samples[-12:] == case["last"]
        whole = np.array(samples, "<i8").tobytes()
        assert hashlib.sha256(whole).hexdigest() == case["sha256"]
