"""EASE for implicit feedback, from one secure sum with discrete Gaussian noise.

EASE scores the items of a user by x_u B, where x_u has the number 1 for each rated item (Steck,
"Embarrassingly shallow autoencoders for sparse data", WWW 2019). The closed form of B needs
only the Gram matrix XᵀX, a sum over users. The exact matrix reveals most users' profiles
(`fedmf.attacks.peeled`). So users send x_u x_uᵀ scaled to a bounded norm, and the sum has
noise. The noised sum is (ε, δ)-differentially private for whole users: neighbouring data differ
by adding or removing all ratings of a user. docs/noise.md has the proof.

`DPEase` trains, and `ItemWeights` recommends. A new user's scores need no other user.
"""

from __future__ import annotations

from fedmf.ease.dpease import DPEase
from fedmf.ease.weights import ItemWeights

__all__ = ["DPEase", "ItemWeights"]
