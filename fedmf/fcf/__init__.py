"""Recommenders for implicit feedback: CF (centralised), FCF and FederatedCF (federated).

FCF is Ammad-ud-din et al., "Federated Collaborative Filtering for Privacy-Preserving
Personalized Recommendation System", 2019; CF is Hu, Koren and Volinsky, ICDM 2008. Users of
`FCF` send gradients, many sums an epoch. Users of `FederatedCF` send moments, one sum an epoch,
and the server finds the factors of `CF` exactly.
"""

from __future__ import annotations

from fedmf.data.splits import user_split
from fedmf.fcf.cf import CF
from fedmf.fcf.confidence import Implicit, views
from fedmf.fcf.fcf import FCF
from fedmf.fcf.federated_cf import FederatedCF
from fedmf.fcf.measures import Ranking, ranking
from fedmf.training import Adam, Descent

__all__ = [
    "CF",
    "FCF",
    "Adam",
    "Descent",
    "FederatedCF",
    "Implicit",
    "Ranking",
    "ranking",
    "user_split",
    "views",
]
