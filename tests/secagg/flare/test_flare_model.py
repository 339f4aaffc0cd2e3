"""Models in messages: any names, shapes and dtypes; nothing else is read."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

pytest.importorskip("nvflare")

from nvflare.apis.dxo import DXO, DataKind
from nvflare.app_common.abstract.fl_model import FLModel
from nvflare.app_common.utils.fl_model_utils import FLModelUtils

from secagg.encoding import flatten
from secagg.errors import ParameterError, RemoteProtocolError
from secagg.flare.model import Model, difference, read_model, read_update, summed, write_model

ARRAYS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
    arrays_of.arrays(
        st.sampled_from(["<f4", ">f8", "<i8", "|b1", "<u2", "<f2"]),
        arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
        elements={"allow_nan": False, "allow_infinity": False},
    ),
    min_size=1,
    max_size=4,
)


@given(ARRAYS, st.integers(0, 9))
def test_model_is_read_as_it_was_written(found: dict[str, np.ndarray], number: int) -> None:
    model = Model("train", number, 10, found, tuple(found)[:1], bytes([number]) * 32)
    read = read_model(write_model(model))
    assert read.configuration == model.configuration
    assert (read.task, read.round, read.rounds, read.excluded) == (
        ("train", number, 10, model.excluded)
    )
    assert list(read.arrays) == list(found)
    for name, array in found.items():
        np.testing.assert_array_equal(read.arrays[name], array)
        assert read.arrays[name].dtype.name == array.dtype.name
    assert write_model(read) == write_model(model)


def assert_no_model(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        read_model(data)
    assert caught.value.check == "model"


@pytest.mark.parametrize("excluded", [(), ("w",)], ids=["summed", "excluded"])
def test_check51_models_that_fail_some_trainings_are_rejected(excluded):
    for bad in (np.nan, np.inf, -np.inf):
        arrays = {"w": np.array([0.0, bad]), "v": np.zeros(2)}
        data = write_model(Model("train", 0, 1, arrays, excluded))
        if excluded and not np.isnan(bad):  # such as a mask of attention
            assert read_model(data).excluded == excluded
        else:
            assert_no_model(data)


@given(st.binary(max_size=200))
def test_other_bytes_are_no_model(data):
    assert_no_model(data)
    assert_no_model(msgspec.msgpack.encode(["train", 0, 1, [], data, b""]))


def test_altered_model_is_no_model_or_a_model():
    good = write_model(Model("train", 0, 1, {"w": np.arange(4.0)}))
    for at in range(len(good)):
        for altered in (good[:at], good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :]):
            try:
                read_model(altered)
            except RemoteProtocolError as error:
                assert error.check == "model"


@pytest.mark.parametrize(
    "arrays",
    [
        [],
        [["w", "object", [1], bytes(8)]],
        [["w", "float64", [2], bytes(8)]],
        [["w", "float64", [-1], bytes(8)]],
        [["w", "float64", [1 << 40, 1 << 40], b""]],
        [["w", "V8", [1], bytes(8)]],
        [["w", "float64", [1], bytes(8)]] * 2,
    ],
    ids=str,
)
def test_arrays_have_names_dtypes_and_shapes_of_their_own(arrays):
    assert_no_model(msgspec.msgpack.encode(["train", 0, 1, [], arrays, b""]))


def test_difference_is_in_the_order_of_flatten():
    base = {"b": np.ones(2, np.float32), "a": np.zeros((2, 1)), "n": np.array([3])}
    model = Model("train", 0, 1, base, ("n",))
    trained = {"a": np.array([[1.0], [2.0]]), "b": np.array([3, 5], np.float32), "n": "ignored"}
    np.testing.assert_array_equal(difference(model, trained, relative=False), [1, 2, 2, 4])
    np.testing.assert_array_equal(difference(model, trained, relative=True), [1, 2, 3, 5])
    assert flatten(summed(model))[1].names == ("a", "b")
    for wrong in ({"b": np.ones(2)}, trained | {"a": np.ones(3)}):
        with pytest.raises(ParameterError, match="array 'a'"):
            difference(model, wrong, relative=True)


@pytest.mark.parametrize("excluded", [(), ("w", "n")])
def test_only_floats_are_summed_and_no_objects_sent(excluded):
    with pytest.raises(ParameterError, match="exclude"):
        summed(Model("train", 0, 1, {"w": np.ones(2), "n": np.array([3])}, excluded))
    with pytest.raises(ParameterError, match="'w'"):
        write_model(Model("train", 0, 1, {"w": np.array([{}])}))


@pytest.mark.parametrize("weight", [None, True, 2.0, "3"], ids=repr)
def test_weight_is_an_integer(weight):
    model = Model("train", 0, 1, {"w": np.zeros(2)})
    made = FLModel(params={"w": np.ones(2)}, meta={"NUM_STEPS_CURRENT_ROUND": weight})
    with pytest.raises(ParameterError):
        read_update(model, FLModelUtils.to_shareable(made), 10)
    made.meta = {"NUM_STEPS_CURRENT_ROUND": 3}
    vector, found = read_update(model, FLModelUtils.to_shareable(made), 10)
    np.testing.assert_array_equal(vector, 1)
    assert found == 3


@pytest.mark.parametrize("kind", [DataKind.METRICS, DataKind.WEIGHTS])
def test_result_without_arrays_is_no_update(kind):
    reply = DXO(kind, data={"v": np.ones(2)}).to_shareable()
    with pytest.raises(ParameterError):
        read_update(Model("train", 0, 1, {"w": np.zeros(2)}), reply, None)
