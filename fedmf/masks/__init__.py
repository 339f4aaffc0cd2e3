"""Personalised masks: one model per user, trained on the user's own ratings alone.

In FedMMF (Yang et al. 2021, section 3.2) each party trains a mask f_u (eq. 10) on the party's
ratings and subtracts the predictions from the ratings (eq. 11). The one-order, two-order and
high-order masks of section 4.1 are `RidgeMask`, `FMMask` and `NNMask`; `MeanMask` is the user's
mean. Alone, without factors, the first three are the paper's LocalLR, LocalFM and LocalNN.

A mask makes the recommender better, but does not protect against a server that sees plain
gradients. Gradients give the masked ratings. Masked ratings give the ratings, as a trained mask
is a known function of the training data. Use secure aggregation for protection.
"""

from __future__ import annotations

from fedmf.masks.combined import LocalHead
from fedmf.masks.higher import FMMask, NNMask
from fedmf.masks.linear import MeanMask, RidgeMask
from fedmf.masks.mmf import FedMMF
from fedmf.masks.protocol import FittedMask, Mask

__all__ = [
    "FMMask",
    "FedMMF",
    "FittedMask",
    "LocalHead",
    "Mask",
    "MeanMask",
    "NNMask",
    "RidgeMask",
]
