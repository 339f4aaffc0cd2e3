import re

import pytest

from fedmf.cli.plots import learning_curve
from fedmf.errors import ModelError
from fedmf.training import History, RoundRecord
from secagg.kit.picture import DARK


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
    "shown", [history([2.0, 1.0, 0.9]), history([1.0, 1.0, 0.9], test=False, aborted=(2,))]
)
def test_learning_curve_is_a_picture_with_content(shown, tmp_path):
    path = tmp_path / "curve.svg"
    learning_curve(shown, path)
    text = path.read_text()
    assert text.startswith('<svg role="img" ')
    labels = re.findall(r"<text [^>]*>([^<]+)</text>", text)
    assert {"train", "one user", "the server", "round"} <= set(labels)
    drawn = text.partition("</style>")[2]
    assert set(re.findall(r"(?:fill|stroke): (#\w+)", drawn)) <= DARK.keys()
    tested = shown.rounds[-1].test_rmse
    assert ("test" in labels) == (tested is not None)
    assert tested is None or f"{tested:.4f}" in labels
    assert ("aborted round" in labels) == any(one.aborted for one in shown)


def test_learning_curve_of_rounds_without_time_is_drawn(tmp_path):
    record = RoundRecord(round=1, cohort=3, train_rmse=1.0, aborted="too few")
    learning_curve(History((record,)), tmp_path / "curve.svg")


def test_learning_curve_without_rounds_or_folder_raises(tmp_path):
    with pytest.raises(ModelError, match="round"):
        learning_curve(History(), tmp_path / "curve.svg")
    with pytest.raises(ModelError, match=r"nowhere/curve\.svg"):
        learning_curve(history([1.0]), tmp_path / "nowhere" / "curve.svg")


def test_learning_curve_of_one_round_marks_every_value(tmp_path):
    """A line needs two points, so without markers the round would be invisible."""
    learning_curve(history([0.9]), tmp_path / "curve.svg")
    drawn = (tmp_path / "curve.svg").read_text().partition("</style>")[2]
    assert len(re.findall(r"<use ", drawn)) >= 4
    assert re.findall(r">(\d+)</text>", drawn)[:1] == ["1"]
