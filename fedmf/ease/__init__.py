"""EASE for implicit feedback, from one secure sum with discrete Gaussian noise.

EASE (Steck, "Embarrassingly shallow autoencoders for sparse data", WWW 2019) scores the items
of a user by x_u B, where x_u has a one for each rated item. Its closed form needs the Gram
matrix XᵀX and nothing else, and that is a sum over users. The exact matrix reveals most users'
profiles (`fedmf.attacks.peeled`), so users send x_u x_uᵀ scaled to a bounded norm, and the sum
has noise. It is (ε, δ)-differentially private for whole users: neighbouring data differ by
adding or removing all ratings of one user. docs/privacy.md has the proof.

`DPEase` trains, and `ItemWeights` recommends. A new user's scores need no other user.
"""

from __future__ import annotations

from fedmf.ease.dpease import DPEase
from fedmf.ease.weights import ItemWeights

__all__ = ["DPEase", "ItemWeights"]
