"""Digests of what every model of fedmf learns, and of the sums and messages behind it.

Two trees whose digests are equal compute the same numbers, to the last bit::

    python tests/digests.py --json before.json      # in one tree
    python tests/digests.py --compare before.json   # in the other, on the same machine

It is a command and no golden file: floats that BLAS and LAPACK had a hand in may differ between
machines. All data is simulated. Keys and masks of secure sums come from the operating system
where nothing else can be passed; the sums are exact integers all the same.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial, partialmethod
from hashlib import sha256
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads change the rounding
if "PYTHONPATH" not in os.environ:  # else an editable install of another tree would be measured
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

import fedmf
import secagg
from benches.papers import retraining
from benches.papers.centralised import SVD
from benches.papers.encrypted_items import EncryptedItems, PlainItems, descend
from benches.papers.indicator import indicator, well_masked
from benches.papers.mixed_mode import MixedSum
from benches.papers.simulated_views import simulate_views
from benches.papers.subset import most_rated
from benches.papers.under_encryption import fedmf_under_encryption, items_under_encryption
from fedmf import attacks, context, dp, fcf, splits
from fedmf.aggregate.noisy import noise_multiplier
from fedmf.attacks.observed import count_raters, in_the_clear, train, under_masks
from fedmf.data.features import item_features
from fedmf.data.sets.simulated import simulate
from fedmf.masks.mmf import masked as less_mask
from fedmf.training.history import mae, rmse
from secagg import paillier, testing, threshold

ARRAYS = (  # documented attributes of fitted models and masks that are not dataclasses
    *("constants", "biases", "inner", "outer", "interactions", "intercepts", "weights"),
    *("means", "parameters_", "user_biases_", "item_biases_", "user_factors_", "item_factors_"),
)
UNTOLD = {"aborted", "costs", "phe", "train"}  # text, times, and values that stand elsewhere
SHOWN = 120  # characters: a list that takes more is shown by its digest
CASES: dict[str, Callable[[], Any]] = {}


def digests(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield names and digests of all parts of a value; numbers and short lists as they are."""
    if is_dataclass(value):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        for key, part in value.items():
            if key not in UNTOLD and not key.endswith("seconds"):
                yield from digests(f"{name} {key}".strip(), part)
    elif isinstance(value, np.ndarray):
        yield from digests(name, f"{value.dtype.str} {value.shape}".encode() + value.tobytes())
    elif isinstance(value, bytes):
        yield name, sha256(value).hexdigest()
    elif isinstance(value, list | tuple | Mapping):
        whole = enumerate(list(value.items()) if isinstance(value, Mapping) else value)
        parts = [part for place, one in whole for part in digests(str(place), one)]
        text = ", ".join(facts for _, facts in parts)
        yield from digests(name, repr(parts).encode() if len(text) > SHOWN else f"[{text}]")
    elif value is None or isinstance(value, str | int | float | np.generic):
        plain = value.item() if isinstance(value, np.generic) else value
        yield name, str(plain) if isinstance(plain, str) else repr(plain)
    else:
        held = {one: getattr(value, one) for one in ARRAYS if hasattr(value, one)}
        yield from digests(name, held)


def judged(model: Any, test: Any = None) -> dict[str, Any]:
    """Return a recommender's attributes, predictions, recommendations, history and errors."""
    test = TEST if test is None else test
    guesses = model.predict(test.users, test.items)
    found: dict[str, Any] = {one.__name__: one(test.values, guesses) for one in (rmse, mae)}
    arrays = {one: getattr(model, one) for one in ARRAYS if hasattr(model, one)}
    learnt = getattr(model, "model_", model)
    # the parameters of a model of features are its trainer's
    found["held"] = arrays if isinstance(model, context.ContextTrainer) else learnt
    found["predicted"] = model.predict(*np.indices((test.n_users, test.n_items)).reshape(2, -1))
    if hasattr(model, "recommend"):
        found["recommended"] = [model.recommend(user, 5) for user in (0, SILENT, 9)]
    if hasattr(model, "history_"):
        rounds, names = list(model.history_), [one.name for one in fields(fedmf.RoundRecord)]
        columns = {name: [getattr(one, name) for one in rounds] for name in names}
        found["history"] = {"cut": model.history_.interrupted, "length": len(rounds), **columns}
    return found


class Watched:
    """Sum that records its results, because not every model has a history."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.asked, self.given = inner, list[Any](), list[Any]()

    def _call(self, what: str, vectors: Any, *, dropouts: Any, session: bytes = b"") -> Any:
        self.asked.append((what, len(vectors), dropouts, session))
        self.given.append(None)  # which stays if the sum is lost
        self.given[-1] = getattr(self.inner, what)(vectors, dropouts=dropouts, session=session)
        return self.given[-1]

    sum, count = partialmethod(_call, "sum"), partialmethod(_call, "count")

    def recorded(self) -> dict[str, Any]:
        left = [0 if one is None else len(one.survivors) for one in self.given]
        phases = Counter(phase for _, _, gone, _ in self.asked for phase in gone.values())
        return {
            "asked": [what for what, *_ in self.asked],
            "names": len({session for *_, session in self.asked}),
            "lost": self.given.count(None),
            "vanished": phases,
            "survivors": left,
            "dropped": [n - m for (_, n, *_), m in zip(self.asked, left, strict=True)],
            "digests": [one and one.digest for one in self.given],
            "in full": self.given,
        }


def under(name: str, train: Any, *what: Any, by: Any = (), sums: Any = (), **how: Any) -> None:
    """Add a case for each kind of sum; a threshold in `sums` is for secret sharing alone."""

    def run(key: str, make: Callable[..., Any]) -> Any:
        options = {k: v for k, v in dict(sums).items() if k != "threshold" or key == "secagg"}
        watched = Watched(make(**options))
        return {**train(*what, watched, **how), "sums": watched.recorded()}

    for key, make in (by or SUMS).items():
        CASES[f"{name} | {key}"] = partial(run, key, make)


entropy = testing.InsecureReplayedEntropy
SILENT = 5  # a user who has no rating to train on
RATINGS = simulate(16, 20, 160, seed=1)
SPLIT = splits.random_split(RATINGS)
SPLIT = replace(SPLIT, train=SPLIT.train.take(SPLIT.train.users != SILENT))
TRAIN, TEST = SPLIT.train, SPLIT.test
VIEWS = fcf.user_split(fcf.views(RATINGS))
ITEMS = item_features(RATINGS)
OWN, USERS = (fedmf.Features(np.eye(n)[:, :2] + 0.1, ("a", "b")) for n in (20, 16))
SOME = (0, 3, 7)
PHASES = ("advertise_keys", "share_keys", "masked_input", "consistency_check", "unmasking")
KEY = paillier.generate_insecure_keypair(512, entropy=entropy(1))
DEALT, SHARES = threshold.deal_insecure(3, 2, bits=512, entropy=entropy(2))
HOLDER = partial(fedmf.PaillierSum, trust="key holder", key=KEY)
SUMS: dict[str, Any] = {
    "plain": fedmf.PlainSum,
    "secagg": fedmf.SecAggSum,
    "one-shot": fedmf.OneShotSum,
    "paillier": HOLDER,
}
MORE_SUMS: dict[str, Any] = {
    "float": fedmf.FloatSum,
    "paillier, shared key": partial(fedmf.PaillierSum, trust="shared client key", key=KEY),
    "paillier, trustees": partial(fedmf.PaillierSum, trust="threshold", key=SHARES),
    "mixed secagg": lambda: MixedSum(fedmf.SecAggSum(), SOME),
    "mixed one-shot": lambda: MixedSum(fedmf.OneShotSum(), SOME),
    "mixed paillier": lambda: MixedSum(HOLDER(), SOME),
}
RIDGE, FM, NN = fedmf.RidgeMask(), fedmf.FMMask(k=2, steps=20), fedmf.NNMask(hidden=3, steps=20)
MASKS: dict[str, Any] = {"ridge": RIDGE, "fm": FM, "nn": NN}
FACTORS = partial(fedmf.FedMF, k=3)
PAPER = FACTORS(rate=0.01, update="paper", start="zero-mean", spread=0.3, min_raters=1)


def private(make: Any, where: Any, **how: Any) -> Any:
    """Train under replayed noise, and put a head on the result."""
    model = dp.DPFedMF(make(), where=where, entropy=entropy(6), seed=3, **how).fit(TRAIN, TEST)
    return {**judged(model), "head": judged(fedmf.LocalHead().fit(model.model_, TRAIN))}


def factorised(model: Any, by: Any, test: Any = TEST, rounds: int = 4, **how: Any) -> Any:
    trainer = fedmf.Trainer(model, by, rounds=rounds, **{"seed": 3, **how})
    return judged(trainer.fit(TRAIN, test))


def stopped(record: fedmf.RoundRecord) -> None:
    if record.round == 2:
        raise KeyboardInterrupt


def masked(mask: Any, model: Any, by: Any, features: Any = None, **how: Any) -> Any:
    """Train FedMMF, put a head on top of it, and fit the mask by itself, as LocalLR is."""
    trainer = fedmf.Trainer(model, by, rounds=3, seed=4, dropout=0.1)
    fitted = fedmf.FedMMF(mask, trainer, **how).fit(TRAIN, TEST, features)
    head = fedmf.LocalHead(penalty=5.0).fit(fitted.model_, TRAIN)
    alone = mask.fit(ITEMS, TRAIN, 7)
    rest = less_mask(TRAIN, alone, 3.5).values
    private = indicator(TRAIN, alone), well_masked(TRAIN, alone, 0.03)
    local = {**judged(alone), "rest": rest, "private": private}
    return {**judged(fitted), "head": judged(head), "local": local}


def headed(features: Any) -> Any:
    """Put a head on factors, merge the two, and save and load the result."""
    base = fedmf.Trainer(FACTORS(), rounds=2).fit(TRAIN).model_
    model = fedmf.LocalHead().fit(base, TRAIN, features)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.fedmf")
        model.factors().save(path)
        file, loaded = path.read_bytes(), fedmf.Factors.load(path)
    return {**judged(model), "file": file, "loaded": judged(loaded)}


def implicit(kind: Any, by: Any = None, alpha: float = 1.0, **how: Any) -> Any:
    how |= {} if by is None else {"aggregation": by}
    model = kind(fcf.Implicit(k=3, alpha=alpha), seed=2, **how).fit(VIEWS.train)
    ranks = fcf.ranking(model.model_, VIEWS.test, VIEWS.train, 5)
    return {**judged(model, VIEWS.test), "ranking": ranks}


def contextual(model: Any, by: Any, **how: Any) -> Any:
    trainer = context.ContextTrainer(model, by, rounds=4, **{"seed": 5, **how})
    found = judged(trainer.fit(TRAIN, items=ITEMS, users=USERS))
    found["items only"] = judged(
        context.ContextTrainer(model, rounds=2).fit(TRAIN, items=ITEMS)
    )
    sums = [record.digest or "" for record in trainer.history_]
    return {**found, "length": len(sums), "digests": sums}


def encrypted(often: int) -> Any:
    """Descend on an item matrix that is encrypted again at intervals, or in the clear."""
    rng = np.random.default_rng(8)
    p, q = (rng.normal(1.0, 0.3, size=(n, 3)) for n in (16, 20))
    make = partial(EncryptedItems, key=KEY, users=16, refresh_every=often)
    items = (make if often else PlainItems)(q.reshape(-1))
    after = list(descend(PAPER, TRAIN, items, p, rounds=3))
    facts = {"rounds": after, "anew": getattr(items, "refreshes", None), "read": items.read()}
    return {**judged(after[-1]), **facts}


def compared(name: str, **how: Any) -> Any:
    run = {"fedmf": fedmf_under_encryption, "items": items_under_encryption}[name]
    return run(SPLIT, KEY, rounds=2, **how)


def parted(part: Any) -> Any:
    return {"first": part(RATINGS).train, "second": part(RATINGS).test}


def observed(model: Any) -> Any:
    """Observe two rounds as a server, in the clear and under masks."""
    rounds = train(model, TRAIN, 2, 9)
    secure = [under_masks(one, {0, 3}, 9) for one in rounds]
    clear = [in_the_clear(one, user) for one in rounds for user in (0, 3)]
    facts = {"rounds": rounds, "clear": clear, "secure": secure}
    return {**facts, "raters": count_raters(RATINGS)}


def shared(**how: Any) -> Any:
    """Run rounds from replayed entropy, two clients dropping out in each phase in turn."""
    how = {"threshold": 5, "encoding": secagg.FixedPoint(1.5), **how}
    params = secagg.RoundParams(n_clients=9, length=6, **how)
    rng, found = np.random.default_rng(10), dict[str, Any]()
    rows = rng.normal(size=(9, 6)) if params.encoding.signed else rng.integers(0, 9, (9, 6))
    weights = {u: 1 + u for u in range(9)} if params.max_weight else None
    given: dict[str, Any] = {"policy": testing.toy_policy(params), "weights": weights}
    for gone in ({}, *({2: phase, 6: phase} for phase in PHASES)):
        given["dropouts"] = gone
        facts: dict[str, Any] = {}
        facts["simulated"] = secagg.simulate_round(rows, params, entropy=entropy(11), **given)
        whole = testing.Round(params=params, vectors=dict(enumerate(rows)), **given)
        cohort = testing.Cohort(whole)
        while cohort.inbox:
            phase = str(cohort.server.phase)
            sent = cohort.step(without=[u for u in gone if gone[u] == phase])
            facts[phase] = {"sent": [sent], "answered": [cohort.deliver(sent)]}
        found[gone.get(2, "nobody")] = facts | {"sum": cohort.server.result()}
    return found


def ciphers(noise: Any, weight: int | None) -> Any:
    """Encrypt, add and open vectors from replayed entropy, by one key and by trustees."""
    key = paillier.generate_insecure_keypair(512, noise=noise, entropy=entropy(12))
    coded = secagg.FixedPoint(1.5)
    packing = secagg.Packing(encoding=coded, length=40, summands=8, max_weight=weight)
    rows, draw = np.random.default_rng(13).normal(size=(4, 40)), entropy(14)
    how: Any = (packing, weight, draw)
    one, two, *more = (key.public_key.encrypt_vector(row, *how) for row in rows)
    own = key.encrypt_vector(rows[0], *how)
    total = one + two * 2 - own
    theirs: Any = sum(DEALT.public_key.encrypt_vector(row, *how) for row in rows)
    asked = DEALT.public_key.load_vector(theirs.to_bytes(draw), packing, 4)
    parts = [share.decrypt_partially(asked.ciphertexts, draw) for share in SHARES[:2]]
    keys: list[Any] = [key, key.public_key, DEALT, *SHARES]
    return {
        "keys": [each.to_bytes() for each in keys],
        "messages": [each.to_bytes(draw) for each in (one, two, *more, own, total)],
        "partials": [each.to_bytes() for each in parts],
        "sums": [key.decrypt_vector(total), DEALT.combine_vector(asked, parts), own.clipped],
    }


for name in ("fast", "large", "paper"):
    under(f"FedMF, preset {name}", factorised, fedmf.preset(name).model, rounds=2)
under("FedMF", factorised, FACTORS(), by=SUMS | MORE_SUMS, dropout=0.1)
# no dropouts here: other clients' messages would depend on the graph, which is random
GRAPH = {"secagg, graph": partial(fedmf.SecAggSum, neighbours=14, threshold=9)}
under("FedMF, nobody vanishing", factorised, FACTORS(), by=SUMS | GRAPH)
under("FedMF, stopped", factorised, FACTORS(), test=None, callbacks=[stopped])
under("FedMF, cohorts", factorised, FACTORS(min_raters=2), cohort=0.6, dropout=0.1)
under("FedMF, cohorts of 9", factorised, FACTORS(min_raters=1), cohort=9)
under("FedMF, all phases", factorised, FACTORS(), rounds=6, dropout=0.3)
under("FedMF, lost", factorised, FACTORS(), rounds=6, dropout=0.2, sums={"threshold": 13})
under("FedMF, lost to all", factorised, FACTORS(), cohort=3, dropout=0.7)
under("FedMF, clipped", factorised, FACTORS(), sums={"clip": 3.5, "fractional_bits": 12})
under("FedMF, few raters", factorised, FACTORS(min_raters=5))
under("FedMF, no penalty", factorised, FACTORS(k=8, reg=0.0, rate=0.05))
under("FedMF, biases", factorised, FACTORS(biases=True), dropout=0.1)
under("FedMF, gradients", factorised, PAPER, dropout=0.1)
under("FedMF, gradients, biases", factorised, replace(PAPER, biases=True))
under("FedMF, gradients, neutral", factorised, replace(PAPER, start="neutral"), cohort=0.5)
for least in (1, 3):
    als = partial(factorised, fedmf.FedALS(k=3, min_raters=least))
    under(f"FedALS, {least} raters", als, sums={"clip": 64.0})
    under(f"FedALS, {least} raters, cohorts", als, sums={"clip": 64.0}, cohort=0.6)
    under(f"FedALS, {least} raters, dropouts", als, sums={"clip": 64.0}, dropout=0.3)
for where in ("central", "distributed"):
    for key, make in SUMS.items():
        CASES[f"DPFedMF, {where} | {key}"] = partial(private, make, where)
for key, make in SUMS.items():
    how = {"honest": 0.75, "rounds": 6, "dropout": 0.3}
    CASES[f"DPFedMF, lost | {key}"] = partial(private, make, "distributed", **how)
CASES["DP, noise"] = partial(noise_multiplier, 1.0, 1e-5, 9)
FREE, MEAN = fedmf.RidgeMask(penalty=0.0), fedmf.MeanMask(shrink=2.0)
for name, mask in {**MASKS, "ridge, no penalty": FREE, "mean": MEAN}.items():
    under(f"FedMMF, {name}", masked, mask, FACTORS())
under("FedMMF, no offset", masked, RIDGE, PAPER, offset=False)
under("FedMMF, FedALS", masked, FM, fedmf.FedALS(k=3), sums={"clip": 64.0})
under("FedMMF, own features", masked, NN, FACTORS(), features=OWN)
CASES["LocalHead"] = partial(headed, None)
CASES["LocalHead, no features"] = partial(headed, fedmf.Features(np.zeros((20, 0)), ()))
FINE, WIDE = {"fractional_bits": 24}, {"clip": 256.0, "fractional_bits": 32}
CARRIED = {"reset": False, "rounds": 3, "steps": 2, "dropout": 0.2, "min_raters": 1}
DESCENT = {"optimiser": fcf.Descent(rate=0.02), "rounds": 2, "steps": 3}
under("FCF", implicit, fcf.FCF, sums=FINE, rounds=2, steps=3)
under("FCF, carried on", implicit, fcf.FCF, sums=FINE, optimiser=fcf.Adam(rate=0.1), **CARRIED)
under("FCF, descent", implicit, fcf.FCF, sums=FINE, **DESCENT)
under("FederatedCF", implicit, fcf.FederatedCF, sums=WIDE, rounds=3, min_raters=1)
for kind in (fcf.FCF, fcf.FederatedCF):
    lost = {"sums": WIDE | {"threshold": 12}, "rounds": 6, "dropout": 0.25}
    under(f"{kind.__name__}, lost", implicit, kind, alpha=2.0, **lost)
    CASES[f"{kind.__name__}, own sum"] = partial(implicit, kind, rounds=2)
CASES["FCF, step by step"] = lambda: list(fcf.FCF(rounds=2, steps=2).iterate(VIEWS.train))
CASES["CF"] = partial(implicit, fcf.CF, rounds=4)
CASES["SVD"] = lambda: judged(SVD(k=4, epochs=5, seed=1).fit(TRAIN))
for model in (context.FedLR(reg=0.01), context.FedFM(k=2), context.FedNN(hidden=3)):
    name = type(model).__name__
    under(name, contextual, model)
    under(f"{name}, cohorts", contextual, model, cohort=0.6, dropout=0.1)
    under(f"{name}, lost", contextual, model, sums={"threshold": 13}, dropout=0.3)
for often in (0, 1, 5):
    CASES[f"items, encrypted every {often}"] = partial(encrypted, often)
CASES["experiment, sums"] = partial(compared, "fedmf", with_phe=False)
CASES["experiment, items"] = partial(compared, "items", refresh_every=1)
CASES["observed, gradients"] = partial(observed, PAPER)
CASES["observed, few raters"] = partial(observed, FACTORS())
for yes in (False, True):
    CASES[f"leakage, {yes}"] = partial(attacks.leakage, RATINGS, SOME, one_round=yes)
    on = partial(attacks.on_masked_ratings, RATINGS, SOME, mask=FM, amount=0.5)
    CASES[f"on masked ratings, {yes}"] = partial(on, ranked=yes)
    CASES[f"singletons, {yes}"] = partial(attacks.singletons, TRAIN, 1 + yes, dropout=0.2)
for name, mask in MASKS.items():
    invert = attacks.inversion if mask is RIDGE else retraining.inversion
    CASES[f"inversion, {name}"] = partial(invert, RATINGS, SOME, mask)
CASES["round, complete"] = shared
CASES["round, weights"] = partial(shared, max_weight=9, threshold=6)
CASES["round, graph"] = partial(shared, neighbours=6, threshold=4)
CASES["round, active"] = partial(shared, security="active", threshold=7, session=b"round")
CASES["round, integers"] = partial(shared, encoding=secagg.Integers(9), modulus=1009)
for noise in ("half-length", "textbook"):
    CASES[f"Paillier, {noise}"] = partial(ciphers, noise, None)
    CASES[f"Paillier, {noise}, weights"] = partial(ciphers, noise, 3)
CASES["data"] = lambda: {
    "whole": fedmf.load("simulated"),
    "views": simulate_views(50, 32),
    "most rated": most_rated(RATINGS, 10, 8),
    "features": ITEMS,
}
PARTED = {"at random": splits.random_split, "last": splits.leave_last, "users": fcf.user_split}
for name, part in PARTED.items():
    CASES[f"split, {name}"] = partial(parted, part)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", metavar="FILE", help="write the digests")
    parser.add_argument("--compare", metavar="FILE", help="print only what differs from FILE")
    parser.add_argument("--only", metavar="NAME", default="", help="cases with NAME in theirs")
    options = parser.parse_args()
    cases = [name for name in CASES if options.only in name]
    if not cases:
        parser.error(f"no case has {options.only!r} in its name")
    print(f"measured: {fedmf.__file__} and {secagg.__file__}", file=sys.stderr)
    warnings.filterwarnings("ignore", ".* send their gradients in the clear")
    found, failed = dict[str, str](), False
    for case in cases:
        try:
            new = list(digests("", CASES[case]()))
        except Exception as error:  # continue with the other cases
            new, failed = [("failed", f"{type(error).__name__}: {error}")], True
        found |= {f"{case}: {field}": facts for field, facts in new}
    if options.json:
        Path(options.json).write_text(json.dumps(found, indent=1) + "\n")
    if not options.compare:
        print(*(f"{name} = {facts}" for name, facts in found.items()), sep="\n")
        return int(failed)
    old = json.loads(Path(options.compare).read_text())
    old = {
        name: facts for name, facts in old.items() if options.only in name.partition(": ")[0]
    }
    different = [name for name in old if found.get(name, "nothing") != old[name]]
    for name in sorted(different):
        print(f"{name}: {old[name]} before, {found.get(name, 'nothing')} now")
    if different or failed:
        return 1
    more = len(found.keys() - old.keys())  # such as the history of a model without one
    print(f"{len(old)} digests, all equal" + (f", and {more} that are new" if more else ""))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
