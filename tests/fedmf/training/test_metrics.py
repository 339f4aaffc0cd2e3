import numpy as np
import pytest

from fedmf.errors import DataError
from fedmf.training import History, RoundRecord, mae, rmse


def test_errors_of_known_differences():
    ratings, predictions = np.array([4.0, 2.0, 5.0]), np.array([3.0, 4.0, 5.0])
    assert rmse(ratings, predictions) == pytest.approx((5 / 3) ** 0.5)
    assert mae(ratings, predictions) == pytest.approx(1.0)


def test_errors_are_averaged_per_rating_and_not_per_user():
    """Three ratings of one user count three times as much as one of another."""
    assert mae(np.array([1.0, 1.0, 1.0, 1.0]), np.array([1.0, 1.0, 1.0, 5.0])) == 1.0


@pytest.mark.parametrize("error", [rmse, mae])
def test_empty_or_unequal_shapes_raise(error):
    with pytest.raises(DataError, match=r"\(0,\)"):
        error(np.array([]), np.array([]))
    with pytest.raises(DataError, match=r"\(2,\) .*\(1,\)"):
        error(np.array([1.0]), np.array([1.0, 2.0]))


def test_history_and_records_have_a_short_repr():
    record = RoundRecord(round=3, cohort=60, survivors=58, test_rmse=0.83124, digest="0" * 64)
    assert repr(record) == "<RoundRecord: round 3, 58 of 60 users, test RMSE 0.8312>"
    assert repr(History((record,) * 200)) == "<History: rounds 200, test RMSE 0.8312>"
    assert repr(History()) == "<History: rounds 0>"
