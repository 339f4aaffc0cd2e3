"""Flattening of a model's arrays, and the digest of their names, shapes and dtypes."""

from __future__ import annotations

import hashlib
import struct
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from effort import examples
from secagg import ParameterError, flatten

SHAPES = array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=3)
EXACT = [
    *(arrays(d, SHAPES) for d in ("<f8", ">f8", "<f4", ">f4", "<f2", "?")),
    *(arrays(d, SHAPES) for d in ("u1", "<i2", ">i4", "<u4")),
    arrays("<i8", SHAPES, elements=st.integers(-(1 << 53), 1 << 53)),
    arrays("<u8", SHAPES, elements=st.integers(0, 1 << 53)),
]
LEAVES = st.one_of(EXACT)


class FakeTensor:
    """PyTorch's tensor as far as flatten uses it; numpy() fails as it does there."""

    def __init__(self, data: object, *, device: str = "cpu", grad: bool = False) -> None:
        self.data = np.array(data)
        self.device, self.grad = device, grad

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    def detach(self) -> FakeTensor:
        return FakeTensor(self.data, device=self.device)

    def cpu(self) -> FakeTensor:
        return FakeTensor(self.data, grad=self.grad)

    def numpy(self) -> np.ndarray:
        if self.grad or self.device != "cpu":
            raise RuntimeError("a tensor that requires grad or is on cuda")
        return self.data

    def new_tensor(self, data: np.ndarray) -> FakeTensor:
        return FakeTensor(np.asarray(data, self.data.dtype), device=self.device)


class Bfloat16Tensor(FakeTensor):
    def detach(self) -> Bfloat16Tensor:
        return self

    cpu = detach

    def numpy(self) -> np.ndarray:
        raise TypeError("Got unsupported ScalarType BFloat16")


def same(one: np.ndarray, other: np.ndarray) -> bool:
    """Equal values, in dtypes that differ in the byte order at most."""
    assert isinstance(one, np.ndarray)
    assert one.dtype == other.dtype.newbyteorder("=")
    return one.shape == other.shape and np.array_equal(
        one, other, equal_nan=one.dtype.kind == "f"
    )


@examples(50)
@given(
    st.dictionaries(st.text(max_size=5), LEAVES, min_size=1, max_size=4)
    | st.lists(LEAVES, min_size=1, max_size=12)
)
def test_arrays_are_restored_exactly_and_in_order(model):
    vector, schema = flatten(model)
    assert (vector.dtype, vector.shape) == (np.float64, (schema.length,))
    restored = schema.unflatten(vector)
    assert type(restored) is type(model)
    pairs = [
        (i, a) for i, a in (model.items() if isinstance(model, dict) else enumerate(model))
    ]
    assert len(restored) == len(pairs)
    assert all(same(restored[i], array) for i, array in pairs)
    if isinstance(model, list):
        assert same(vector[: model[0].size], model[0].astype(float).ravel())


def test_vector_and_arrays_are_copies() -> None:
    array = np.zeros(3)
    vector, schema = flatten([array])
    vector[0] = 1.0
    restored = schema.unflatten(vector)[0]
    vector[1] = 1.0
    assert array.tolist() == [0, 0, 0]
    assert restored.tolist() == [1, 0, 0]
    restored[2] = 5.0


def test_strided_arrays_are_flattened_in_c_order() -> None:
    matrix = np.arange(6.0).reshape(2, 3)
    assert flatten([matrix.T])[0].tolist() == [0, 3, 1, 4, 2, 5]
    assert flatten([np.asfortranarray(matrix)])[0].tolist() == [0, 1, 2, 3, 4, 5]
    assert flatten([matrix[:, ::2]])[0].tolist() == [0, 2, 3, 5]


# ---- the digest


A = {"w": np.zeros((2, 3)), "b": np.zeros(3, np.float32)}


def test_digest_ignores_values_order_and_byte_order() -> None:
    _, schema = flatten(A)
    other = OrderedDict(b=np.ones(3, ">f4"), w=np.ones((2, 3)).T.copy().T)
    _, same_schema = flatten(other)
    assert schema == same_schema
    assert schema.names == ("b", "w")
    assert schema.digest == same_schema.digest
    assert len(b"round 7 " + schema.digest) <= 64


@pytest.mark.parametrize(
    "other",
    [
        {"w": A["w"], "c": A["b"]},
        {"w": A["w"].T, "b": A["b"]},
        {"w": A["w"], "b": A["b"].astype(float)},
        {"w": A["w"].reshape(6), "b": A["b"]},
        {"w": A["w"]},
        {"wb": A["w"], "": A["b"]},
        [A["b"], A["w"]],
        {"0": A["b"], "1": A["w"]},
    ],
)
def test_digest_depends_on_names_shapes_dtypes_and_kind(other: object) -> None:
    digests = [flatten(x)[1].digest for x in (A, other, [A["w"], A["b"]])]
    assert len(set(digests)) == 3


def test_digest_is_the_documented_hash() -> None:
    """Recomputed here from the docstring's rule: other implementations need the same bytes."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    data = b"secagg/1 schema\x01"
    data += text("b") + text("float32") + struct.pack("<QQ", 1, 3)
    data += text("w") + text("float64") + struct.pack("<QQQ", 2, 2, 3)
    assert flatten(A)[1].digest == hashlib.sha256(data).digest()


# ---- PyTorch and scikit-learn


def test_state_dict_goes_to_a_vector_and_back_to_tensors() -> None:
    state = OrderedDict(
        weight=FakeTensor(np.ones((2, 3), np.float32), device="cuda", grad=True),
        bias=FakeTensor(np.zeros(2, np.float32), grad=True),
        num_batches_tracked=FakeTensor(np.int64(7)),
    )
    vector, schema = flatten(state)
    assert schema.dtypes == ("float32", "int64", "float32")
    assert vector.tolist() == [0, 0, 7, 1, 1, 1, 1, 1, 1]
    assert schema == flatten({name: tensor.data for name, tensor in state.items()})[1]
    back = schema.unflatten(vector / 2, like=state)
    assert {name: type(tensor) for name, tensor in back.items()} == dict.fromkeys(
        state, FakeTensor
    )
    assert back["weight"].device == "cuda"
    assert back["weight"].data.dtype == np.float32
    assert back["weight"].data.tolist() == [[0.5] * 3] * 2
    assert back["num_batches_tracked"].data.shape == ()
    plain = schema.unflatten(vector)
    assert all(isinstance(array, np.ndarray) for array in plain.values())


# ---- what is rejected


@pytest.mark.parametrize(
    "model",
    [
        {},
        [],
        np.zeros(3),
        None,
        {3: np.zeros(3)},
        *(
            {"a": array}
            for array in (
                np.zeros(2, complex),
                np.array([None]),
                np.zeros(2, np.longdouble),
                [1.0, 2.0],
                np.ma.zeros(3),
                np.array([(1 << 53) + 1]),
                np.array([-(1 << 53) - 1]),
                np.array([1 << 63], np.uint64),
                Bfloat16Tensor([1.0]),
            )
        ),
    ],
)
def test_array_that_is_no_float64_is_rejected(model: object) -> None:
    with pytest.raises(ParameterError):
        flatten(model)


@pytest.mark.parametrize("vector", [np.zeros(8), np.zeros((9, 1)), [0.0] * 8, 3.0])
def test_vector_of_another_shape_is_rejected(vector: object) -> None:
    with pytest.raises(ParameterError):
        flatten(A)[1].unflatten(vector)


@pytest.mark.parametrize(
    ("array", "value"),
    [
        (np.zeros(2, bool), 1.6),
        (np.zeros(2, np.uint8), 256.0),
        (np.zeros(2, np.uint8), -1.0),
        (np.zeros(2, np.int64), 2.0**63),
        (np.zeros(2, np.int32), np.nan),
        (np.zeros(2, np.float16), 1e6),
    ],
)
def test_element_beyond_its_dtype_is_rejected(array: np.ndarray, value: float) -> None:
    _, schema = flatten({"a": array})
    with pytest.raises(ParameterError):
        schema.unflatten(np.array([0.0, value]))


def test_integers_and_booleans_are_rounded_to_the_nearest() -> None:
    _, schema = flatten([np.zeros(3, np.uint8), np.zeros(3, bool)])
    numbers, flags = schema.unflatten(np.array([254.6, -0.2, 1.4, 0.6, 0.4, 1.0]))
    assert numbers.tolist() == [255, 0, 1]
    assert flags.tolist() == [True, False, True]


@pytest.mark.parametrize(
    "like", [{"w": A["w"]}, {**A, "x": A["b"]}, {**A, "w": A["w"].T}, [A["b"], A["w"]]]
)
def test_like_of_another_model_is_rejected(like: object) -> None:
    vector, schema = flatten(A)
    with pytest.raises(ParameterError):
        schema.unflatten(vector, like=like)
