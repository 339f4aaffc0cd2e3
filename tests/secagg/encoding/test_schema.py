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
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier

import secagg
from secagg import FixedPoint, ParameterError, RoundParams, flatten

FLOATS = ("<f8", ">f8", "<f4", ">f4", "<f2")
EXACT = [
    *(arrays(d, array_shapes(min_dims=0, min_side=0, max_dims=4)) for d in FLOATS),
    arrays("?", array_shapes(min_dims=0, min_side=0)),
    *(arrays(d, array_shapes(min_dims=0)) for d in ("u1", "<i2", ">i4", "<u4")),
    arrays("<i8", array_shapes(), elements=st.integers(-(1 << 53), 1 << 53)),
    arrays("<u8", array_shapes(), elements=st.integers(0, 1 << 53)),
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


@given(st.dictionaries(st.text(max_size=5), LEAVES, min_size=1, max_size=5))
def test_mapping_is_restored_exactly(given_arrays: dict[str, np.ndarray]) -> None:
    vector, schema = flatten(given_arrays)
    assert vector.dtype == np.float64
    assert vector.shape == (schema.length,)
    restored = schema.unflatten(vector)
    assert restored.keys() == given_arrays.keys()
    assert all(same(restored[name], array) for name, array in given_arrays.items())


@given(st.lists(LEAVES, min_size=1, max_size=12))
def test_sequence_is_restored_exactly_and_in_order(given_arrays: list[np.ndarray]) -> None:
    vector, schema = flatten(given_arrays)
    restored = schema.unflatten(vector)
    assert isinstance(restored, list)
    assert all(same(a, b) for a, b in zip(restored, given_arrays, strict=True))
    assert same(vector[: given_arrays[0].size], given_arrays[0].astype(float).ravel())


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


def test_other_model_is_rejected_through_the_session() -> None:
    """A party with another model has another session, so its messages are rejected."""
    sessions = [b"round 7 " + flatten(x)[1].digest for x in (A, {**A, "b": np.zeros(3)})]
    keys, server = (
        RoundParams(
            n_clients=3, threshold=2, length=9, encoding=FixedPoint(1.0), session=session
        )
        for session in sessions
    )
    message = secagg.Client(0, keys).advertise_keys()
    with pytest.raises(secagg.RemoteProtocolError):
        secagg.Server(server).receive(0, message)


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


def test_linear_models_of_scikit_learn_are_averaged() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(60, 4))
    models = [
        Ridge(1e-6).fit(inputs[i::3], inputs[i::3].sum(axis=1)) for i in range(3)
    ]  # its intercept_ is a numpy float, not an array
    flat = [flatten({"coef_": m.coef_, "intercept_": m.intercept_}) for m in models]
    params = RoundParams(n_clients=3, threshold=2, length=5, encoding=FixedPoint(4.0, 24))
    mean = secagg.simulate_round([vector for vector, _ in flat], params).mean
    for name, value in flat[0][1].unflatten(mean).items():
        setattr(models[0], name, value)
    assert np.allclose(models[0].predict(inputs), inputs.sum(axis=1), atol=1e-3)


def test_classifiers_of_scikit_learn_take_their_parameters_back() -> None:
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(40, 3))
    labels = inputs[:, 0] > 0
    linear = LogisticRegression().fit(inputs, labels)
    vector, schema = flatten({"coef_": linear.coef_, "intercept_": linear.intercept_})
    assert schema.shapes == ((1, 3), (1,))
    network = MLPClassifier((4,), max_iter=1, solver="lbfgs")
    with pytest.warns(Warning, match="converge"):
        network.fit(inputs, labels)
    vector, layers = flatten([*network.coefs_, *network.intercepts_])
    restored = layers.unflatten(vector)
    before = network.predict_proba(inputs)
    network.coefs_, network.intercepts_ = restored[:2], restored[2:]
    assert np.array_equal(before, network.predict_proba(inputs))


# ---- what is rejected


@pytest.mark.parametrize(
    ("arrays", "named"),
    [
        ({}, "no array"),
        ([], "no array"),
        (np.zeros(3), "ndarray"),
        ("text", "str"),
        (None, "NoneType"),
        ({3: np.zeros(3)}, "int"),
        ({"a": np.zeros(2, complex)}, "'a' is complex128"),
        ({"a": np.array([None])}, "'a' is object"),
        ({"a": np.array(["x"])}, "'a' is <U1"),
        ({"a": np.zeros(2, np.longdouble)}, "'a' is float128"),
        ({"a": np.zeros(2, "M8[s]")}, "'a' is datetime64"),
        ({"a": [1.0, 2.0]}, "'a' is a list"),
        ({"a": {"b": np.zeros(2)}}, "'a' is a dict"),
        ({"a": None}, "'a' is a NoneType"),
        ({"a": np.ma.zeros(3)}, "'a' is a masked array"),
        ({"a": np.array([(1 << 53) + 1])}, r"'a' .*2\^53"),
        ({"a": np.array([1 << 63], np.uint64)}, r"'a' .*2\^53"),
        ({"a": Bfloat16Tensor([1.0])}, r"'a' .*\.float\(\)"),
    ],
)
def test_array_that_is_no_float64_is_rejected(arrays: object, named: str) -> None:
    with pytest.raises(ParameterError, match=named):
        flatten(arrays)


@pytest.mark.parametrize("vector", [np.zeros(8), np.zeros((9, 1)), [0.0] * 8, 3.0])
def test_vector_of_another_shape_is_rejected(vector: object) -> None:
    with pytest.raises(ParameterError, match="9 elements"):
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
    with pytest.raises(ParameterError, match=f"element 1 of array 'a' .*{array.dtype}"):
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
    with pytest.raises(ParameterError, match="pass the arrays that were flattened"):
        schema.unflatten(vector, like=like)
