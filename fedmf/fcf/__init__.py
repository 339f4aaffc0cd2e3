"""Recommenders for implicit feedback: CF (centralised), FCF and FederatedCF (federated).

FCF is Ammad-ud-din et al., "Federated Collaborative Filtering for Privacy-Preserving
Personalized Recommendation System", 2019; CF is Hu, Koren and Volinsky, ICDM 2008. Users of
`FCF` send gradients, and an epoch takes many sums. Users of `FederatedCF` send moments, and an
epoch takes a single sum; the server finds the same factors as `CF`.
"""

from __future__ import annotations

from fedmf.data.splits import user_split
from fedmf.fcf.cf import CF
from fedmf.fcf.confidence import Implicit, tuned, views
from fedmf.fcf.fcf import FCF
from fedmf.fcf.moments import FederatedCF
from fedmf.training import Adam, Descent, Ranking, ranking

__all__ = [
    "CF",
    "FCF",
    "Adam",
    "Descent",
    "FederatedCF",
    "Implicit",
    "Ranking",
    "ranking",
    "tuned",
    "user_split",
    "views",
]
