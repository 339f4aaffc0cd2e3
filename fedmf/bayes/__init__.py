"""Bayesian matrix factorisation by Gibbs sampling, through secure sums.

The model is due to Salakhutdinov and Mnih ("Bayesian probabilistic matrix factorization using
Markov chain Monte Carlo", ICML 2008, section 3), with biases and links from features::

    r_ui = μ + b_u + b_i + p_u · q_i + ε,   ε ~ N(0, 1 / (α w_u)),   w_u ~ Gamma(ν/2, ν/2)
    (p_u, b_u) ~ N(μ_U + Uᵀ g_u, Λ_U⁻¹),   (q_i, b_i) ~ N(μ_V + Wᵀ f_i, Λ_V⁻¹)

with normal-Wishart priors of (μ_U, Λ_U) and (μ_V, Λ_V). A round is one sweep of the sampler.
Each user draws their own (p_u, b_u) and weight w_u. The user sends, for each rated item, the
moments w z zᵀ and w z e with the residual e. Here z has 1 and the factors of p_u that the round
draws, all or a few in turn. A message has the moments of the user's own (p_u, b_u, g_u), too.
The server needs only the sums of these moments to draw the same factors and the bias of all
items, both hyper-priors, the links and the noise precision α. No λ and no γ is tuned.

Features f_i are public features and implicit feedback, which is also the source of g_u; see
`fedmf.bayes.sample`. The weight makes the noise of a user Student-t (Geweke, "Bayesian
treatment of the independent Student-t linear model", 1993). Users who rate at random count
less.

`FedBPMF` trains, and `Posterior` predicts by the average of many draws.
"""

from __future__ import annotations

from fedmf.bayes.bpmf import FedBPMF, Rounds
from fedmf.bayes.posterior import Posterior

__all__ = ["FedBPMF", "Posterior", "Rounds"]
