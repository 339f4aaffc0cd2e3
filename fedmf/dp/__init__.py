"""Ratings under differential privacy for whole users: item effects from noised sums.

The server learns two numbers of each item: the effect on a rating, and the popularity. Both
come from a few noised secure sums, so they are (ε, δ)-differentially private for a user's whole
history. Public features of the items, such as genres and year, and the popularity give the
prior of the effects. All else is local: a user's bias, taste for good items and for popular
items are a private ridge regression on these numbers, and a `fedmf.LocalHead` adds the taste
for genres. So `DPFedMF` is a matrix factorisation whose item factors are private, and whose
user factors never leave their users.

The idea is due to Hua, Xia and Zhong, "Differentially private matrix factorization", IJCAI
2015. The recommender is untrusted, the noise comes in shares from the users, and the user
factors are private. According to the abstract (the paper was not available) the authors perturb
the objective. Here the users' residuals are summed under noise, and all data of a user are
protected. docs/noise.md has the proof.
"""

from __future__ import annotations

from fedmf.dp.dpfedmf import DPFedMF

__all__ = ["DPFedMF"]
