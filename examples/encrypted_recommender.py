"""Recommender trained under homomorphic encryption, with the same result in three trust models.

The keys are short so that it runs in a second. Leave `key` out for keys of 3072 bits.
"""

from fedmf import FedMF, PaillierSum, PlainSum, Trainer
from fedmf.data.sets.simulated import simulate
from fedmf.data.splits import random_split
from secagg.paillier import generate_insecure_keypair
from secagg.threshold import deal_insecure

split = random_split(simulate(n_users=30, n_items=40, n_ratings=600, seed=1), seed=0)
key = generate_insecure_keypair()
_, shares = deal_insecure(trustees=3, threshold=2, bits=512)

plain = Trainer(FedMF(k=4), PlainSum(), rounds=3, dropout=0.1).fit(split.train, split.test)
print(f"in the clear: test RMSE {plain.history_.last.test_rmse:.4f}")

for aggregation in (
    PaillierSum(trust="shared client key", key=key),
    PaillierSum(trust="key holder", key=key),
    PaillierSum(trust="threshold", key=shares),
):
    trainer = Trainer(FedMF(k=4), aggregation, rounds=3, dropout=0.1)
    history = trainer.fit(split.train, split.test).history_
    same = all(
        one.digest == other.digest for one, other in zip(plain.history_, history, strict=True)
    )
    print(f"{aggregation.trust}: the same integers in every round: {same}")
    print(f"    warning: {aggregation.warning}")
