"""Deviation of the noise that an (ε, δ) needs."""

from __future__ import annotations

from fedmf.errors import optional
from secagg.oneshot.privacy import ORDERS


def deviation(epsilon: float, delta: float) -> float:
    """Return σ of discrete Gaussian noise for messages with L2 norms of together at most 1.

    The noise gives ρ-zCDP with ρ = 1 / 2σ² for adding or removing a user (Canonne, Kamath and
    Steinke 2020, §2). The same holds for several sums, even if a later sum depends on earlier
    sums: squared norms add up, and so do the ρ (Bun and Steinke 2016, composition). ε follows
    from the Rényi divergences. Raises MissingExtra if dp-accounting is not installed.

    Parameters
    ----------
    epsilon, delta : float, ε > 0 and 0 < δ < 1, δ well below 1 / n_users
    """
    dp_accounting = optional("dp_accounting", "finds the noise")
    rdp = optional("dp_accounting.rdp", "finds the noise")
    # the divergence of a zCDP event is ρ α for either direction of the neighbours
    relation = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
    guess = float(dp_accounting.get_sigma_gaussian(float(epsilon), float(delta)))
    found = dp_accounting.calibrate_dp_mechanism(
        lambda: rdp.RdpAccountant(ORDERS, relation),
        lambda sigma: dp_accounting.ZCDpEvent(1 / (2 * sigma**2)),
        float(epsilon),
        float(delta),
        dp_accounting.LowerEndpointAndGuess(guess / 2, 1.1 * guess),
        tol=1e-6 * guess,  # the error of σ, towards more noise
    )
    return float(found)
