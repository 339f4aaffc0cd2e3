"""The client's report: sizes, what it is bound to, fresh secrets, and arguments."""

from __future__ import annotations

import numpy as np
import pytest

from oneshot_parties import LENIENT, parties
from secagg import Identity, ParameterError, client_id
from secagg.oneshot import OneShotPolicy, messages, report
from secagg.testing import InsecureReplayedEntropy, make_identity

VECTOR = np.array([1, 2, 3, 4])


@pytest.mark.parametrize(
    "arguments",
    [
        {"client_id": 1 << 64},
        {"identity": None},
        {"identity": b"seed"},
        {"weight": 1},
        {"policy": OneShotPolicy(min_threshold=3)},
        {"policy": OneShotPolicy(helpers=frozenset([bytes(32)]))},
        {"policy": {}},
        {"vector": np.arange(5)},
        {"vector": np.array([1, 2, 3, 101])},
        {"entropy": lambda size: bytes(size - 1)},
        {"params": b"bytes"},
    ],
    ids=lambda arguments: next(iter(arguments)),  # a function's address is no name
)
def test_argument_out_of_range_raises(arguments: dict[str, object]) -> None:
    with parties(2, 2, n_clients=5) as made:
        right = {
            "vector": VECTOR,
            "params": made.params,
            "client_id": 1,
            "identity": make_identity(1),
        }
        report(**right)  # type: ignore[arg-type]
        with pytest.raises(ParameterError):
            report(**(right | arguments))  # type: ignore[arg-type]


def test_weight_and_identity_fit_the_session() -> None:
    with parties(2, 2, n_clients=5, security="semi-honest", max_weight=3) as made:
        for weight in (None, 4, -1, 1.5):
            with pytest.raises(ParameterError):
                report(VECTOR, made.params, 1, weight)  # type: ignore[arg-type]
        with pytest.raises(ParameterError):
            report(VECTOR, made.params, 1, 3, identity=Identity(bytes(32)))
        report(VECTOR, made.params, 1, 3)


def test_repeated_entropy_gives_other_seeds_in_other_sessions_and_to_other_clients() -> None:
    """A helper of one session would otherwise know the seeds of another."""
    with parties(2, 2, n_clients=5) as made:
        other = made.make_params(n_clients=5, session=b"session 2")
        drawn = set()
        for params, client, seed in [
            (made.params, 1, 1),
            (other, 1, 1),
            (made.params, 2, 1),
            (made.params, 1, 2),
        ]:
            sent = report(
                VECTOR,
                params,
                client,
                identity=make_identity(seed),
                entropy=InsecureReplayedEntropy("stuck"),
            )
            boxed = sent[params.layout.box(1)]
            content = sent[34 : 34 + params.layout.head]
            info = messages.box_info(messages.read_head(content, params), 1)
            drawn.add(made.journals[0].box_key.open(boxed, info))
        assert len(drawn) == 4
        assert None not in drawn


def test_name_stands_for_its_id() -> None:
    with parties(2, 2, n_clients=5, security="semi-honest") as made:
        sent = report(VECTOR, made.params, "alice")
        assert sent[34:42] == client_id("alice").to_bytes(8, "little")


def test_error_has_neither_a_frame_nor_a_text_with_the_vector() -> None:
    with parties(2, 2, n_clients=5, security="semi-honest") as made:
        with pytest.raises(ParameterError) as caught:
            report(np.array([1, 2, 3, 987_654_321]), made.params, 1)
        assert "987" not in repr(caught.value)
        assert caught.value.__context__ is None
        frame = caught.value.__traceback__
        while frame is not None:
            assert not str(frame.tb_frame.f_globals["__name__"]).startswith("secagg.")
            frame = frame.tb_next


@pytest.mark.parametrize(
    "changes", [{"threshold": 1}, {"min_clients": 2}, {"n_clients": 6}], ids=str
)
def test_default_policy_is_checked(changes: dict[str, object]) -> None:
    with parties(2, 2, security="semi-honest") as made:
        params = made.make_params(**{"security": "semi-honest", "n_clients": 5, **changes})
        with pytest.raises(ParameterError):
            report(VECTOR, params, 1)
        report(VECTOR, params, 1, policy=LENIENT)
