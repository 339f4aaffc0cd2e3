import hashlib
import io
import struct
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fedmf.models.factors
from fedmf.errors import ModelError
from fedmf.models import Factors
from fedmf.models.additions import ImplicitSettings
from fedmf.models.factors_file import HEADER, MAGIC, VERSION, kind_of, write_tables


def test_model_file_of_version_0_4_predicts_as_it_did():
    """Trained on ``simulate(12, 15, 60, seed=4)`` by FedMF(k=2), 10 rounds, seed 1."""
    loaded = Factors.load(Path(__file__).with_name("model-0.4.fedmf"))
    assert (loaded.n_users, loaded.n_items, loaded.k) == (12, 15, 2)
    assert loaded.user_ids.tolist() == list(range(1, 13))
    np.testing.assert_allclose(
        loaded.predict([0, 0, 5, 11], [0, 14, 7, 3]),
        [3.7391203882986432, 3.443017857694498, 4.405399034369884, 2.543581488569024],
        rtol=1e-15,
    )
    items, predictions = loaded.recommend(3, k=4)
    assert items.tolist() == [5, 14, 7, 10]
    np.testing.assert_allclose(
        predictions,
        [3.7545167792125635, 3.7468998812287237, 3.719575372103595, 3.6992453647801193],
        rtol=1e-15,
    )


@pytest.fixture
def factors():
    return Factors(
        user_factors=np.array([[1.0, 2.0], [0.0, -1.0]]),
        item_factors=np.array([[3.0, 0.0], [1.0, 1.0], [0.0, 2.0], [1.0, 1.0]]),
        seen_indptr=np.array([0, 1, 1]),
        seen_items=np.array([2], dtype=np.int32),
        user_ids=np.array([7, 9]),
        item_ids=np.array([10, 20, 30, 40]),
    )


def test_predictions_are_products_and_not_clipped(factors):
    np.testing.assert_array_equal(
        factors.predict([0, 0, 1, 1], [0, 2, 2, 1]), [3.0, 4.0, -2.0, -1.0]
    )
    assert factors.predict(0, 1) == 3.0


def test_predict_of_no_pairs_is_empty(factors):
    for nothing in ([], np.zeros(0), np.zeros(0, dtype=np.int32), ()):
        found = factors.predict(nothing, nothing)
        assert (found.shape, found.dtype) == ((0,), np.float64)
    assert factors.predict(np.zeros((0, 3)), np.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(ModelError, match=r"\(0,\).*\(1,\)"):
        factors.predict([], [0])


def test_factors_of_wrong_types_raise(factors):
    tables = {name: getattr(factors, name) for name in type(factors).__dataclass_fields__}
    for p, q in ((2, 4), ((2, 2, 1), (4, 2, 1)), ((2, 0), (4, 0))):
        with pytest.raises(ModelError, match="factors"):
            Factors(**tables | {"user_factors": np.ones(p), "item_factors": np.ones(q)})
    for dtype in (np.complex128, np.str_, object):
        with pytest.raises(ModelError, match="factors"):
            Factors(**tables | {"item_factors": factors.item_factors.astype(dtype)})


def test_tables_that_do_not_fit_raise(factors):
    with pytest.raises(ModelError, match="2 factors, 4 items of 3"):
        replace(factors, item_factors=np.zeros((4, 3)))


def test_scale_ranking_and_text_ids_are_saved(factors, tmp_path):
    path = tmp_path / "model.fedmf"
    named = replace(
        factors,
        user_ids=np.array(["ada", "bob"]),
        item_ids=np.array(["a", "b", "c", "dd"]),
        scale=(0.5, 4.0),
        ranks=True,
        implicit=ImplicitSettings(3.0, 2.0, 0.5),
    )
    named.save(path)
    loaded = Factors.load(path)
    for name in ("user_factors", "item_factors", "seen_indptr", "seen_items"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(factors, name))
    assert (loaded.scale, loaded.ranks) == ((0.5, 4.0), True)
    assert loaded.implicit == ImplicitSettings(3.0, 2.0, 0.5)
    assert loaded.user_ids.tolist() == ["ada", "bob"]
    assert loaded.item_ids.tolist() == ["a", "b", "c", "dd"]
    assert kind_of(path) == "factors"


def test_predictions_are_mapped_to_the_scale_and_recommended_within(factors):
    """The internal 1 to 5 becomes 0 to 100; predictions beyond it are clipped in a list."""
    wide = replace(factors, scale=(0.0, 100.0))
    assert wide.predict([0, 0, 1], [0, 1, 2]).tolist() == [50.0, 50.0, -75.0]
    assert wide.recommend(1, k=4)[1].tolist() == [0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("wrong", [(0.0, 1.0, 0.0), (1.0, np.nan, 0.0), (1.0, 1.0)])
def test_wrong_settings_in_a_file_raise(factors, tmp_path, wrong):
    path = tmp_path / "model.fedmf"
    replace(factors, implicit=wrong).save(path)
    with pytest.raises(ModelError):
        Factors.load(path)


@pytest.mark.parametrize("scale", [(1.0, 1.0), (5.0, 1.0), (0.0, np.inf), (np.nan, 1.0)])
def test_scale_without_a_range_raises(factors, scale):
    with pytest.raises(ModelError):
        replace(factors, scale=scale)


def test_model_of_another_kind_raises(factors, tmp_path):
    path = tmp_path / "model.fedmf"
    write_tables(path, "posterior", {"numbers": np.zeros(3)})
    assert kind_of(path) == "posterior"
    with pytest.raises(ModelError, match=r"'posterior'.* load it with fedmf\.Posterior\.load"):
        Factors.load(path)


@pytest.mark.parametrize("where", [HEADER.size, HEADER.size + 200, -1, len(MAGIC) + 20])
def test_damaged_model_raises(factors, tmp_path, where):
    path = tmp_path / "model.fedmf"
    factors.save(path)
    data = bytearray(path.read_bytes())
    data[where] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"model\.fedmf"):
        Factors.load(path)


def test_model_cut_short_anywhere_raises(factors, tmp_path):
    path = tmp_path / "model.fedmf"
    factors.save(path)
    data = path.read_bytes()
    for size in (*range(1, HEADER.size + 3), len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        found = size if size < HEADER.size else size - HEADER.size
        with pytest.raises(ModelError, match=f" {found} bytes"):
            Factors.load(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(ModelError, match=f" {len(data) + 1 - HEADER.size} bytes"):
        Factors.load(path)


def test_other_version_raises_with_its_number(factors, tmp_path):
    path = tmp_path / "model.fedmf"
    factors.save(path)
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, len(MAGIC), 3)
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"version 3.* 1 and 2"):
        Factors.load(path)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 an npz", b"FEDMF MODEL\n" + bytes(80)])
def test_file_that_is_no_model_raises(factors, tmp_path, data):
    path = tmp_path / "model.fedmf"
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"model\.fedmf"):
        Factors.load(path)
    factors.save(path)
    path.write_bytes(b"G" + path.read_bytes()[1:])
    with pytest.raises(ModelError, match=r"model\.fedmf"):
        Factors.load(path)


def test_missing_model_or_folder_raises_with_its_path(factors, tmp_path):
    with pytest.raises(ModelError, match="nowhere"):
        Factors.load(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"nowhere.*model\.fedmf"):
        factors.save(tmp_path / "nowhere" / "model.fedmf")


def test_pickled_objects_are_never_loaded(factors, tmp_path, monkeypatch):
    """A file with a valid checksum cannot make the reader run code."""
    path = tmp_path / "model.fedmf"
    real = np.savez
    monkeypatch.setattr(
        fedmf.models.factors.np,
        "savez",
        lambda file, **tables: real(file, **tables | {"user_ids": np.array([factors, 1])}),
    )
    factors.save(path)
    with pytest.raises(ModelError, match="allow_pickle"):
        Factors.load(path)


def sealed(body):
    """Return a body under a header that is right."""
    return HEADER.pack(MAGIC, VERSION, len(body), hashlib.sha256(body).digest()) + body


def npz(save=np.savez, **tables):
    file = io.BytesIO()
    save(file, **tables)
    return file.getvalue()


def tables_of(factors):
    """Return the tables of the file of a model without a scale."""
    return vars(factors) | {"kind": np.array("factors"), "scale": np.zeros(0)}


def npy(table):
    file = io.BytesIO()
    np.save(file, table)
    return file.getvalue()


def swollen(factors, shape):
    """Return an archive whose first table claims to be of another shape, without its data."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f8", "fortran_order": False, "shape": shape}
    )
    packed = io.BytesIO(npz(**{name: value for name, value in tables_of(factors).items()
                               if name != "user_factors"}))  # fmt: skip
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("user_factors.npy", file.getvalue())
    return packed.getvalue()


def renamed(factors):
    """Return an archive with a text in place of a table."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, value in tables_of(factors).items():
            archive.writestr(f"{name}.npy", npy(value))
        archive.writestr("user_factors", b"text")
    return packed.getvalue()


@pytest.mark.parametrize(
    "make",
    [
        lambda factors: npy(np.zeros(3)),
        lambda factors: b"",
        lambda factors: b"PK\x03\x04",
        lambda factors: npz(**tables_of(factors))[:-30],
        lambda factors: npz(**tables_of(factors)).replace(b"PK\x01\x02", b"PK\x01\x03"),
        lambda factors: npz(**tables_of(factors)).replace(b"NUMPY", b"NUMPX"),
        lambda factors: npz(
            np.savez_compressed, **tables_of(factors) | {"more": np.zeros(9999)}
        ),
        lambda factors: npz(**tables_of(factors) | {"user_ids": np.array([7.0, 9.0])}),
        lambda factors: swollen(factors, (2**50, 2)),
        lambda factors: swollen(factors, (2**80, 2)),
        lambda factors: swollen(factors, (-1, 2)),
        lambda factors: renamed(factors),
    ],
)
def test_body_without_the_tables_raises(factors, tmp_path, make):
    path = tmp_path / "model.fedmf"
    path.write_bytes(sealed(make(factors)))
    with pytest.raises(ModelError, match=r"model\.fedmf"):
        Factors.load(path)


@pytest.mark.parametrize(
    "changed",
    [
        {"seen_items": np.array([4], dtype=np.int32)},
        {"seen_items": np.array([-1], dtype=np.int32)},
        {"seen_indptr": np.array([0, 2, 1])},
        {"seen_indptr": np.array([1, 1, 1])},
        {"seen_indptr": np.array([], dtype=np.int64)},
        {"user_factors": np.full((2, 2), np.nan)},
        {"item_factors": np.full((4, 2), np.inf)},
        {"scale": np.zeros(3)},
        {"scale": np.array([5.0, 1.0])},
        {"ranks": np.array([True])},
        {"kind": np.array(["factors"])},
    ],
)
def test_impossible_numbers_raise(factors, tmp_path, changed):
    path = tmp_path / "model.fedmf"
    path.write_bytes(sealed(npz(**tables_of(factors) | changed)))
    with pytest.raises(ModelError):
        Factors.load(path)
