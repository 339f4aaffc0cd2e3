"""Accounting for differential privacy: the loss of noised sums, budgets and plans.

A `Loss` bounds what sums reveal of a client's vector, and losses add up. A `Budget` is the
(ε, δ) that a client, or a session, may spend; a `PrivacyLedger` keeps what a client has spent.
`plan` finds noise for a budget. Budgets and ε need dp-accounting:
``pip install "secagg[privacy]"``. docs/differential-privacy.md has the theory.
"""

from __future__ import annotations

from secagg.privacy.budget import Budget
from secagg.privacy.guarantee import against
from secagg.privacy.ledger import PrivacyLedger
from secagg.privacy.loss import Loss
from secagg.privacy.planned import Plan
from secagg.privacy.planning import plan
from secagg.privacy.replaced import epsilon

__all__ = ["Budget", "Loss", "Plan", "PrivacyLedger", "against", "epsilon", "plan"]
