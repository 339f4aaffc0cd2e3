"""The users' profiles, on tiny files and on the real ones, if there: every misfit is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from effort import needs_data
from fedmf.data.sets.profiles import GENDERS, Profiles, read_profiles
from fedmf.data.sets.simulated import simulate
from fedmf.errors import DataError

SOUND = {
    "ml-100k": ("u.user", "2|53|F|other|94043\n1|24|M|technician|V3N4P\n3|7|M|student|00000\n"),
    "ml-1m": ("users.dat", "2::F::56::0::94043\n1::M::18::17::1-234\n3::M::1::10::00000\n"),
}


@pytest.fixture
def read(tmp_path):
    """Return a function that reads the profiles of three users from a file of this content."""

    def write_and_read(name: str, content: str | None = None) -> Profiles:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        file, sound = SOUND[name]
        (folder / file).write_text(sound if content is None else content)
        return read_profiles(replace(simulate(3, 4, 6), name=name), tmp_path)

    return write_and_read


@pytest.mark.parametrize(
    ("name", "ages", "occupations"),
    [
        ("ml-100k", [24, 53, 7], ["technician", "other", "student"]),
        ("ml-1m", [18, 56, 1], ["technician/engineer", "other", "K-12 student"]),
    ],
)
def test_profiles_are_in_the_order_of_the_users(read, name, ages, occupations):
    profiles = read(name)
    assert len(profiles) == 3
    assert profiles.ages.tolist() == ages
    assert [GENDERS[code] for code in profiles.genders] == ["M", "F", "M"]
    assert [profiles.occupation_names[code] for code in profiles.occupations] == occupations
    with pytest.raises(ValueError, match="read-only"):
        profiles.ages[0] = 0


def changed(name: str, line: int, before: str, after: str) -> str:
    lines = SOUND[name][1].splitlines(keepends=True)
    assert before in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(before, after)
    return "".join(lines)


OLD, NEW = SOUND
MISFITS = [
    (OLD, changed(OLD, 2, "1|24", "9|24"), r"u\.user, line 2: user 9"),
    (OLD, changed(OLD, 2, "1|24", "2|24"), "line 2: user 2"),
    (OLD, changed(OLD, 3, "|M|", "|X|"), "line 3:"),
    (OLD, changed(OLD, 3, "|00000", ""), "line 3:"),
    (OLD, changed(OLD, 1, "other", "sailor"), "line 1: .*'sailor'"),
    (OLD, changed(OLD, 3, "3|7|M|student|00000\n", ""), "user 3 "),
    (NEW, changed(NEW, 1, "::0::", "::21::"), r"users\.dat, line 1: .*'21'"),
    (NEW, changed(NEW, 2, "::18::", "::19::"), "line 2:"),
]


@pytest.mark.parametrize(("name", "content", "place"), MISFITS)
def test_file_that_does_not_match_raises_with_its_line(read, name, content, place):
    with pytest.raises(DataError, match=place):
        read(name, content)


def test_data_set_without_profiles_raises_with_remedy():
    with pytest.raises(DataError):
        read_profiles(simulate(3, 4, 6))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ages", np.zeros(2, np.int16)),
        ("genders", np.full(3, 2, np.int8)),
        ("occupations", np.full(3, -1, np.int16)),
    ],
)
def test_profiles_that_do_not_fit_raise(field, value):
    zeros = np.zeros(3, np.int16)
    sound = Profiles(zeros, zeros.astype(np.int8), zeros, ("a", "b"))
    with pytest.raises(DataError):
        replace(sound, **{field: value})


@needs_data
@pytest.mark.parametrize(
    ("name", "n_users", "women", "age"),
    [("ml-100k", 943, 273, 34.05), ("ml-1m", 6040, 1709, 30.64)],
)
def test_real_profiles_have_the_published_counts(name, n_users, women, age):
    users_alone = replace(simulate(n_users, 1, n_users), name=name)
    profiles = read_profiles(users_alone)
    assert len(profiles) == n_users
    assert int((profiles.genders == 0).sum()) == women
    assert profiles.ages.mean() == pytest.approx(age, abs=0.005)
    assert np.unique(profiles.occupations).size == 21
