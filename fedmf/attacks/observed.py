"""What reaches the server of one user: their gradient in the clear, or under the masks.

The secure view is the real thing: every user a `secagg.Client`, and of each one's masked input
the bytes that it sent, decoded as a gradient would be. An attacker who knew which items a user
rated would look at these rows; that much is given to it for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import secagg
from fedmf.aggregate import FloatSum, PlainSum, SecAggSum
from fedmf.aggregate.aggregation import Progress
from fedmf.aggregate.vectors import Rows, Vectors
from fedmf.attacks.leakage import Seen
from fedmf.data import Ratings
from fedmf.errors import SettingError
from fedmf.models import Factors, FedMF
from fedmf.training import Schedule
from fedmf.training.loop import Loop
from fedmf.training.trainer import FactorTraining
from secagg import _fast
from secagg.encoding import Entropy
from secagg.protocol import Phase
from secagg.protocol.messages import MaskedInput, decode

__all__ = [
    "Progress",
    "SecureRound",
    "TrainingRound",
    "count_raters",
    "in_the_clear",
    "train",
    "under_masks",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TrainingRound:
    """One round of a training, before anybody hides anything.

    Parameters
    ----------
    number
        Which round, from 1.
    q
        float64, shape (m, k): the item factors that the server gave out.
    gradients
        η_ui of every user, by user.
    """

    number: int
    q: Floats
    gradients: Mapping[int, Rows]


@dataclass(frozen=True, eq=False)
class SecureRound:
    """What the server of a secure aggregation has after it.

    Parameters
    ----------
    masked
        By user, float64 of shape (m, k): the masked input y_u, decoded as if it were η_u.
    total
        float64, shape (m, k): the sum over all users.
    """

    masked: Mapping[int, Floats]
    total: Floats


def train(
    model: FedMF,
    ratings: Ratings,
    rounds: int,
    seed: int,
    progress: Progress = lambda what, done, of: None,
) -> list[TrainingRound]:
    """Train for a few rounds with every user, and keep what each of them computed.

    The raters of the items are counted first, as `Trainer` does, and items with fewer than
    ``model.min_raters`` are left out.

    Raises
    ------
    SettingError
        If the model has biases, or its factors grow beyond all bounds.
    """
    if model.biases:
        raise SettingError(
            f"{model!r} has biases, which the attacks do not solve for: take biases=False"
        )
    training = FactorTraining(model, ratings)
    # a generator of its own: other draws than `Trainer` starts from
    before = Factors.of(*model.initial(ratings, np.random.default_rng(seed)), ratings)
    seen = []
    for one in Loop(FloatSum(), Schedule(), rounds).iterate(training, before):
        steps = training.local_steps(before, one.raters)
        gradients = {user: steps.vector(user) for user in range(ratings.n_users)}
        seen.append(TrainingRound(one.record.round, before.item_factors, gradients))
        before = one.state
        progress("training", one.record.round, rounds)
    return seen


def count_raters(ratings: Ratings) -> NDArray[np.int64]:
    """Return the raters of each item, counted by all users through secure aggregation."""
    everyone = np.arange(ratings.n_users)
    return Loop(SecAggSum(), Schedule(), 1).count(ratings, 1, everyone)[0].counts


def in_the_clear(of: TrainingRound, user: int) -> Seen:
    """Return what a plain sum shows of a user: their rows, in the protocol's fixed point.

    Rows of items that are not trained are zero and say nothing; `leakage` gives NaN for them.
    """
    rows = of.gradients[user]
    encoding = PlainSum().encoding
    integers, _ = encoding.encode_integers(np.asarray(rows.values, np.float64).reshape(-1))
    eta = encoding.decode_integers(integers).reshape(rows.values.shape)
    return Seen(of.q[rows.indices], eta)


def under_masks(
    of: TrainingRound,
    users: Collection[int],
    seed: int,
    progress: Progress = lambda what, done, of: None,
) -> SecureRound:
    """Let all users of a round be clients of secure aggregation, and keep what some sent.

    Parameters
    ----------
    of
        The round.
    users
        Whose masked inputs are kept; the others are there all the same.
    seed
        Of the clients' keys and masks, together with the number of the round: masks that came
        twice would cancel in the difference of two masked inputs. A client that is not a
        simulation takes them from the operating system; here a figure has to be the same the
        next time.
    """
    vectors = Vectors(of.gradients, of.gradients.__getitem__, of.q.shape)
    encoding = SecAggSum().encoding
    session = b"attacked round %d" % of.number
    params = SecAggSum().params(len(vectors), of.q.size, encoding, session)
    entropy: Entropy = np.random.default_rng((seed, 1, of.number)).bytes
    server = secagg.Server(params, entropy=entropy)
    clients = {u: secagg.Client(u, params, entropy=entropy) for u in vectors}
    inbox, masked = dict.fromkeys(clients, b""), {}
    while inbox:
        masking = server.phase is Phase.MASKED_INPUT
        for done, (user, data) in enumerate(inbox.items(), start=1):
            vector = np.asarray(vectors[user].dense(), np.float64) if masking else None
            answer = clients[user].answer(data, vector)
            if masking and user in users:
                masked[user] = _as_gradient(answer, user, params, encoding).reshape(of.q.shape)
            server.receive(user, answer)
            if masking:
                progress("secure aggregation", done, len(clients))
        inbox = server.close_round()
    total = np.asarray(server.result().sum, dtype=np.float64)
    return SecureRound(masked, total.reshape(of.q.shape))


def _as_gradient(
    data: bytes, user: int, params: secagg.RoundParams, encoding: secagg.FixedPoint
) -> Floats:
    """Return y_u of a masked input's bytes as the floats that its integers would stand for."""
    message = decode(data, MaskedInput, params, sender=user, phase=Phase.MASKED_INPUT)
    lanes = params.ring.zeros(params.elements)
    _fast.unpack_bits(message.values, params.ring.bits, lanes)
    floats, _ = encoding.decode(lanes, params.ring)
    return floats
