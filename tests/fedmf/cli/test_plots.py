import sys

import numpy as np
import pytest
from matplotlib.image import imread

from fedmf.cli.plots import learning_curve
from fedmf.errors import ModelError
from fedmf.training import History, RoundRecord


def history(errors, *, test=True, aborted=()):
    return History(
        tuple(
            RoundRecord(
                round=number,
                cohort=10,
                train_rmse=error,
                test_rmse=error + 0.05 if test else None,
                client_seconds=0.2,
                server_seconds=0.1,
                aborted="too few" if number in aborted else None,
            )
            for number, error in enumerate(errors, start=1)
        )
    )


@pytest.mark.parametrize(
    "shown",
    [
        history([2.0, 1.0, 0.9, 0.85]),
        pytest.param(history([0.9]), marks=pytest.mark.large),
        history([1.0, 1.0, 0.9], test=False, aborted=(2,)),
        pytest.param(history(np.geomspace(3, 0.8, 450).tolist()), marks=pytest.mark.large),
    ],
)
def test_a_curve_is_a_picture_with_something_on_it(shown, tmp_path):
    path = tmp_path / "curve.png"
    learning_curve(shown, path)
    picture = imread(path)
    assert picture.shape[0] > 500
    assert picture.shape[1] > 800
    assert picture.std() > 0.05
    if shown.rounds[0].test_rmse is None:
        return
    blue = (np.abs(picture[..., :3] - np.array([0x1F, 0x5F, 0xA8]) / 255) < 0.02).all(axis=-1)
    assert blue.sum() > 20


def test_rounds_of_no_time_can_be_drawn(tmp_path):
    record = RoundRecord(round=1, cohort=3, train_rmse=1.0, aborted="too few")
    learning_curve(History((record,)), tmp_path / "curve.png")


def test_the_global_state_of_matplotlib_is_left_alone(tmp_path):
    learning_curve(history([1.0, 0.9]), tmp_path / "curve.png")
    assert "matplotlib.pyplot" not in sys.modules


def test_nothing_to_draw_and_nowhere_to_draw_are_told(tmp_path):
    with pytest.raises(ModelError, match="round"):
        learning_curve(History(), tmp_path / "curve.png")
    with pytest.raises(ModelError, match=r"nowhere/curve\.png"):
        learning_curve(history([1.0]), tmp_path / "nowhere" / "curve.png")
