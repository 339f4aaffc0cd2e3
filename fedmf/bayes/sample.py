"""Kept draw of the sampler, predictions from a draw, and the form of draws in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedmf import _fast
from fedmf.bayes.gaussian import Link, Prior
from fedmf.models.factors_file import Form

Floats = NDArray[np.float64]
Small = NDArray[np.float32]

ATTRIBUTES = {
    "users": "users",
    "items": "items",
    "weights": "weights",
    "noise": "noise",
    "user_means": "user_prior.mean",
    "user_precisions": "user_prior.precision",
    "item_means": "item_prior.mean",
    "item_precisions": "item_prior.precision",
    "links": "link.weights",
    "link_precisions": "link.precision",
    "user_links": "user_link.weights",
    "user_link_precisions": "user_link.precision",
}
"""Attributes of a sample, by the tables of samples in a file.

The first axis of each table counts the samples.
"""
SMALL = ("users", "items", "weights")  # tables of float32
SAMPLES: Form = {name: (np.float32 if name in SMALL else np.float64,) for name in ATTRIBUTES}


@dataclass(frozen=True, eq=False)
class Sample:
    """Draw of all unknowns.

    Parameters
    ----------
    users, items : float32, shapes (n, d) and (m, d): the rows (p_u, b_u) and (q_i, b_i)
    weights : float32, shape (n,), w_u
    noise : float, α, precision of the ratings of a user of weight 1
    user_prior, item_prior : hyper-priors
    link : regression of the items on their features; the features of `Traits` are last
    user_link : regression of the users on their profiles; see `fedmf.bayes.traits`
    """

    users: Small
    items: Small
    weights: Small
    noise: float
    user_prior: Prior
    item_prior: Prior
    link: Link
    user_link: Link


def predictions(
    sample: Sample, mean: float, users: NDArray[np.integer], items: NDArray[np.integer]
) -> Floats:
    """Return μ + b_u + b_i + p_u · q_i of pairs, from a single draw, on the internal scale."""
    p, q = sample.users.astype(np.float64), sample.items.astype(np.float64)
    left = np.column_stack((p[:, :-1], p[:, -1] + mean, np.ones(len(p))))
    right = np.column_stack((q[:, :-1], np.ones(len(q)), q[:, -1]))
    found = np.empty(users.size)
    _fast.predict(left, right, users.astype(np.int64), items.astype(np.int64), found)
    return found


def tables_of(samples: Sequence[Sample]) -> dict[str, NDArray[Any]]:
    """Return the tables of at least one sample, for a file."""
    return {
        name: np.array([attrgetter(attribute)(one) for one in samples])
        for name, attribute in ATTRIBUTES.items()
    }


def samples_of(tables: Mapping[str, NDArray[Any]]) -> tuple[Sample, ...]:
    """Return the samples of the tables in a file; ValueError if they are inconsistent."""
    users, items, links = tables["users"], tables["items"], tables["links"]
    count, n_users, d = users.shape
    shapes = {
        "items": (count, items.shape[1], d),
        "weights": (count, n_users),
        "noise": (count,),
        "user_means": (count, d),
        "user_precisions": (count, d, d),
        "item_means": (count, d),
        "item_precisions": (count, d, d),
        "links": (count, links.shape[1], d),
        "link_precisions": (count,),
        "user_links": (count, d - 1, d),
        "user_link_precisions": (count,),
    }
    for name, shape in shapes.items():
        if tables[name].shape != shape:
            raise ValueError(f"{name} has the shape {tables[name].shape}, not {shape}")
    for name in SAMPLES:
        if not np.isfinite(tables[name]).all():
            raise ValueError(f"{name} has NaN or infinity")
    for name in ("weights", "noise"):
        if not (tables[name] > 0).all():
            raise ValueError(f"{name} is not positive")
    return tuple(
        Sample(
            users[s],
            items[s],
            tables["weights"][s],
            float(tables["noise"][s]),
            Prior(tables["user_means"][s], tables["user_precisions"][s]),
            Prior(tables["item_means"][s], tables["item_precisions"][s]),
            Link(links[s], float(tables["link_precisions"][s])),
            Link(tables["user_links"][s], float(tables["user_link_precisions"][s])),
        )
        for s in range(count)
    )
