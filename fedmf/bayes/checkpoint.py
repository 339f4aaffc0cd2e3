"""Checkpoint of a training: a file to continue the training from, to the same numbers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedmf.bayes.pools import Pools
from fedmf.bayes.sample import SAMPLES, Chain, Traits, samples_of, tables_of
from fedmf.data import Features, Ratings
from fedmf.errors import ModelError
from fedmf.models.factors_file import Form, read_tables, write_tables
from fedmf.models.federated import Raters
from fedmf.settings import Settings
from fedmf.training.history import RoundRecord
from fedmf.training.loop import Round

KIND = "bpmf checkpoint"
EVERY = 10  # rounds between two checkpoints
APART = ("aggregation", "callbacks")  # settings without influence on the draws

# The last sample is the state of the chain. Samples are float32, so items and weights of the
# state are stored in full precision, too: the training must continue to the same numbers.
FORM: Form = {
    **SAMPLES,
    "items_now": (np.float64,),
    "weights_now": (np.float64,),
    "item_traits": (np.float64,),
    "embedding": (np.float64,),
    "digest": (np.str_,),
    "history": (np.str_,),
    "mean": (np.float64,),
    "round": (np.int64,),
    "counts": (np.int64,),
    "item_counts": (np.int64,),
    "rows": (np.int64,),
    "share": (np.float64,),
    "train_guesses": (np.float64,),
    "test_guesses": (np.float64,),
}


@dataclass(frozen=True, eq=False)
class Begun:
    """State of a training before the next round.

    Parameters
    ----------
    mean : float, μ
    chain : state of the sampler
    raters : raters of each item, if they were counted
    records : records of the finished rounds
    """

    mean: float
    chain: Chain
    raters: Raters | None = None
    records: tuple[RoundRecord, ...] = ()


class Checkpoint:
    """File of a training, for the settings, ratings and features of the start.

    Parameters
    ----------
    path : file, which need not exist
    settings : the estimator
    train, test, features : the arguments of the estimator's `fit`
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        settings: Settings,
        train: Ratings,
        test: Ratings | None,
        features: Features,
    ) -> None:
        self._path, self._tested = Path(path), test is not None
        own = {k: v for k, v in settings.get_params(deep=False).items() if k not in APART}
        own["sweeps"] = own.pop("rounds")  # the name in the digests of older files
        seen = hashlib.sha256(repr(sorted(own.items())).encode())
        for part in (train,) if test is None else (train, test):
            for array in (part.indptr, part.items, part.values, np.array(part.scale)):
                seen.update(np.ascontiguousarray(array).tobytes())
        seen.update(np.ascontiguousarray(features.matrix).tobytes())
        self._digest = seen.hexdigest()

    def read(self) -> Begun | None:
        """Return the training to continue, or None if there is no file yet.

        Raises ModelError if the file is damaged, or of other settings or ratings.
        """
        if not self._path.exists():
            return None
        tables = read_tables(self._path, KIND, FORM)
        if str(tables["digest"]) != self._digest:
            raise ModelError(
                f"the checkpoint {self._path} is of other settings, ratings or features: "
                "delete it, or pass another path"
            )
        *samples, last = samples_of(tables)
        counts = tables["counts"]
        share, items, rows = float(tables["share"]), tables["item_counts"], tables["rows"]
        raters = Pools(counts, share, items, rows) if counts.size else None
        traits = Traits(tables["item_traits"], tables["embedding"])
        guesses = tables["train_guesses"], tables["test_guesses"]
        users = last.users.astype(np.float64)
        now = {"users": users, "items": tables["items_now"], "weights": tables["weights_now"]}
        chain = Chain(
            **vars(last) | now,
            traits=traits if traits.items.size else None,
            round=int(tables["round"]),
            samples=tuple(samples),
            guesses=guesses if self._tested else guesses[:1],
        )
        records = tuple(RoundRecord(**one) for one in json.loads(str(tables["history"])))
        return Begun(float(tables["mean"]), chain, raters, records)

    def kept(self, rounds: Iterator[Round[Chain]], begun: Begun) -> Iterator[Round[Chain]]:
        """Yield the rounds, and write the training to the file after every `EVERY` rounds."""
        records = [*begun.records]
        for one in rounds:
            records.append(one.record)
            if one.record.round % EVERY == 0 and one.state.guesses:
                self._write(Begun(begun.mean, one.state, one.raters, tuple(records)))
            yield one

    def _write(self, now: Begun) -> None:
        chain, none, nothing = now.chain, np.zeros((0, 0)), np.zeros(0, dtype=np.int64)
        pools = now.raters if isinstance(now.raters, Pools) else None
        tables: dict[str, Any] = tables_of((*chain.samples, chain.sample)) | {
            "items_now": chain.items,
            "weights_now": chain.weights,
            "item_traits": none if chain.traits is None else chain.traits.items,
            "embedding": none if chain.traits is None else chain.traits.embedding,
            "digest": np.array(self._digest),
            "history": np.array(json.dumps([asdict(one) for one in now.records])),
            "mean": np.array(now.mean),
            "round": np.array(chain.round),
            "counts": nothing if pools is None else pools.counts,
            "item_counts": nothing if pools is None else pools.items,
            "rows": nothing if pools is None else pools.rows,
            "share": np.array(0.0 if pools is None else pools.share),
            "train_guesses": chain.guesses[0],
            "test_guesses": chain.guesses[1] if self._tested else np.zeros(0),
        }
        write_tables(self._path, KIND, tables)
