"""The server's view of a user, a gradient in the clear or a masked input, and attacks' success.

The secure view is real: every user is a `secagg.Client`, and the bytes of the masked input are
decoded like a gradient. The attacker also knows the items that a user rated. An `Outcome`
compares an attack against plain and secure sums with guessing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

import secagg
from fedmf.aggregate import FloatSum, PlainSum, SecAggSum
from fedmf.aggregate.aggregation import Progress, silent
from fedmf.aggregate.vectors import Rows, Vectors
from fedmf.attacks.leakage import Floats, Seen, from_two_rounds, on_grid
from fedmf.data import Ratings
from fedmf.data.checks import check_ratings
from fedmf.data.internal import internal, to_internal
from fedmf.errors import DataError, SettingError
from fedmf.models import PRESETS, Factors, FedMF
from fedmf.models.recommender import numbers
from fedmf.settings import Seed, check
from fedmf.training import Schedule
from fedmf.training.loop import Loop
from fedmf.training.trainer import FactorTraining
from secagg import _fast
from secagg.client.client import answer_quietly
from secagg.encoding import Entropy
from secagg.protocol import Phase
from secagg.protocol.messages import MaskedInput, decode

Users = NDArray[np.int64]

View = Callable[[int], tuple[Seen, Seen]]
"""The server's view of a user in the first round and in the second."""

PAPER = PRESETS["paper"].model  # trains every item, as the paper does


@dataclass(frozen=True, eq=False)
class TrainingRound:
    """Round `number` = 1, 2, … of a training in the clear: each user's gradients η_ui.

    The item factors `q` before the round are float64 of shape (m, k).
    """

    number: int
    q: Floats
    gradients: Mapping[int, Rows]


@dataclass(frozen=True, eq=False)
class SecureRound:
    """The server's view of a secure aggregation: masked inputs y_u, and the decoded sum.

    All tables are float64 of shape (m, k). The masked input y_u is decoded like a gradient η_u.
    """

    masked: Mapping[int, Floats]
    total: Floats


def at_mean(model: FedMF, ratings: Ratings) -> FedMF:
    """Return the model with the mean rating, if the model needs the mean, as in `Trainer`."""
    if not model.needs_mean:
        return model
    return model.at_mean(Loop(FloatSum(), Schedule(), 1).means(ratings)[0])


def train(
    model: FedMF, ratings: Ratings, rounds: int, seed: int, progress: Progress = silent
) -> list[TrainingRound]:
    """Train for a few rounds with every user, as `Trainer` does, and keep all gradients.

    The ratings, or residuals, must be on the internal scale.
    Raises SettingError if the model has biases, or the factors diverge.
    """
    if model.biases:
        raise SettingError(
            f"biases = {model.biases}: the attacks cannot solve for biases; set biases=False"
        )
    training = FactorTraining(model, ratings)
    # a separate generator: the starting factors differ from the start of `Trainer`
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
    """Return the number of raters of each item, from a secure sum over all users."""
    everyone = np.arange(ratings.n_users)
    return Loop(SecAggSum(), Schedule(), 1).count(1, everyone, ratings)[0].counts


def in_the_clear(of: TrainingRound, user: int, centre: Floats | float = 0.0) -> Seen:
    """Return the view of a user in a plain sum: the gradients, rounded to fixed point."""
    rows = of.gradients[user]
    encoding = PlainSum().encoding
    integers, _ = encoding.encode_integers(np.asarray(rows.values, np.float64).reshape(-1))
    eta = encoding.decode_integers(integers).reshape(rows.values.shape)
    return Seen(of.q[rows.indices], eta, centre)


def under_masks(
    of: TrainingRound, users: Collection[int], seed: int, progress: Progress = silent
) -> SecureRound:
    """Sum a round by secure aggregation of all users, and keep the masked inputs of some.

    `seed` stands for the entropy of keys and masks, so that figures can be repeated.
    """
    vectors = Vectors(of.gradients, of.gradients.__getitem__, of.q.shape)
    encoding = SecAggSum().encoding
    session = b"attacked round %d" % of.number
    params = SecAggSum().params(len(vectors), of.q.size, encoding, session)
    # a key of this round alone: equal masks would cancel in the difference of two inputs
    entropy: Entropy = np.random.default_rng((seed, 1, of.number)).bytes
    server = secagg.Server(params, entropy=entropy)
    clients = {u: secagg.Client(u, params, entropy=entropy) for u in vectors}
    inbox, masked = dict.fromkeys(clients, b""), {}
    while inbox:
        masking = server.phase is Phase.MASKED_INPUT
        for done, (user, data) in enumerate(inbox.items(), start=1):
            vector = np.asarray(vectors[user].dense(), np.float64) if masking else None
            answer = answer_quietly(clients[user], data, vector)
            if masking and user in users:
                message = decode(answer, MaskedInput, params, sender=user, phase=server.phase)
                lanes = params.ring.zeros(params.elements)
                _fast.unpack_bits(message.values, params.ring.bits, lanes)
                masked[user] = encoding.decode(lanes, params.ring)[0].reshape(of.q.shape)
            server.receive(user, answer)
            if masking:
                progress("secure aggregation", done, len(clients))
        inbox = server.close_round()
    total = np.asarray(server.result().sum, dtype=np.float64)
    return SecureRound(masked, total.reshape(of.q.shape))


def attacked(ratings: Ratings, users: ArrayLike, seed: int) -> Users:
    """Validate the arguments of a trial and return `users` sorted and unique; see `leakage`."""
    check_ratings(ratings=ratings)
    check(Seed, seed=seed)
    some = np.unique(numbers("user", users, ratings.n_users))
    if not some.size:
        raise SettingError("users is empty: pass one, or draw some with chosen()")
    silent = some[np.diff(ratings.indptr)[some] == 0]
    if silent.size:
        raise SettingError(f"user {silent[0]} has no rating to find: draw users with chosen()")
    return some


def views(
    ratings: Ratings, users: Users, model: FedMF, seed: int, progress: Progress
) -> tuple[View, View, View]:
    """Train for two rounds; return the views of plain gradients, masked inputs and sums."""
    rounds, centre = train(model, ratings, 2, seed, progress), model.centre
    secure = [under_masks(one, set(users.tolist()), seed, progress) for one in rounds]

    def at(user: int, *tables: Floats) -> tuple[Seen, Seen]:
        items = rounds[0].gradients[user].indices
        both = zip(rounds, tables, strict=True)
        first, second = (Seen(one.q[items], table[items], centre) for one, table in both)
        return first, second

    return (
        lambda user: (
            in_the_clear(rounds[0], user, centre),
            in_the_clear(rounds[1], user, centre),
        ),
        lambda user: at(user, *(one.masked[user] for one in secure)),
        lambda user: at(user, *(one.total for one in secure)),
    )


def leaked(view: View, users: Users, model: FedMF) -> list[Floats]:
    """Return the ratings that `from_two_rounds` finds for each user, with 0 for NaN."""
    return [np.nan_to_num(from_two_rounds(*view(user), model.reg)) for user in users.tolist()]


EXACT = 1e-9


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Success of an attack, as shares of ratings found exactly, from 0 to 1.

    `on_masked_ratings` reports the mean rates of the paper's attacks instead.

    Parameters
    ----------
    attack : str, name of the attack
    plain : float, share without secure aggregation
    secure : float, share with secure aggregation, found from a user's masked input
    summed : float, share found from the sum over all users, which secure aggregation reveals
    chance : float, share found by guessing the most frequent rating
        For attacks on masked ratings, the share found with shuffled numbers.
    ratings : int, number of ratings to find
    """

    attack: str
    plain: float
    secure: float
    summed: float
    chance: float
    ratings: int

    def __repr__(self) -> str:
        found = f"plain {self.plain:.3f}, secure {self.secure:.3f}, sum {self.summed:.3f}"
        return f"<Outcome: {self.attack}, {found}, chance {self.chance:.3f}>"

    @classmethod
    def of(
        cls, attack: str, truth: Floats, plain: Floats, secure: Floats, summed: Floats
    ) -> Outcome:
        """Return the outcome of three arrays of found ratings, each of the shape of `truth`."""
        return cls(
            attack=attack,
            plain=share_right(plain, truth),
            secure=share_right(secure, truth),
            summed=share_right(summed, truth),
            chance=chance(truth),
            ratings=truth.size,
        )


def grid_of(ratings: Ratings) -> Floats:
    """Return all possible ratings, ascending, in half steps if any rating has a half.

    Raises DataError for ratings in other steps, as an attack would fail for that reason.
    """
    low, high = ratings.scale
    if np.isfinite(high - low):
        step = 1.0 if ((ratings.values - low) % 1 == 0).all() else 0.5
        grid = np.arange(low, high + step / 2, step)
        if grid.size > 1:  # else there is no step
            off = np.abs(on_grid(ratings.values, grid) - ratings.values)
            if (off < EXACT).all():
                return grid
    raise DataError(
        f"the ratings of {ratings.name}, {low:g} to {high:g}, are not in whole or half steps, "
        "which the attack needs: choose another data set"
    )


def gridded(ratings: Ratings) -> tuple[Ratings, Floats]:
    """Return the ratings on the internal scale of the training, and their grid there."""
    grid = grid_of(ratings)  # raises for a scale that cannot be mapped
    return internal(ratings), to_internal(grid, ratings.scale)


def share_right(found: Floats, truth: Floats) -> float:
    """Return the share of ratings found exactly; NaN is not found."""
    return float((np.abs(found - truth) < EXACT).mean()) if truth.size else 0.0


def chance(truth: Floats) -> float:
    """Return the share of the most frequent rating, 0 for no ratings."""
    counts = np.unique(truth, return_counts=True)[1]
    return float(counts.max() / truth.size) if truth.size else 0.0


def all_of(ratings: Ratings, users: NDArray[np.int64]) -> Floats:
    """Return the ratings of some users, one user after the other."""
    return np.concatenate([ratings.of_user(int(user))[1] for user in users])
