"""Draws from the conditional distributions of the sampler, and state of the hyper-priors.

Equation numbers refer to Salakhutdinov and Mnih 2008 (see `fedmf.bayes`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedmf import _fast
from fedmf.errors import SettingError
from fedmf.models.moments import triangle

Floats = NDArray[np.float64]

START = 10.0  # precision; 1, 10 and 100 were tried on validation ratings of ml-100k's subsets
BETA_0 = 2.0  # the textbook hyper-priors: μ_0 = 0, ν_0 = d and W_0 = I besides
NU = 8.0  # ν; 4, 8 and 16 were tried on validation ratings of ml-100k
LEAST = 1e-3  # standard deviation of a feature; rounded sums cannot tell less from zero
SHAPE_0 = RATE_0 = 1.0  # of the gamma priors of α and of the link's precision


@dataclass(frozen=True, eq=False)
class Prior:
    """Gaussian prior of the rows of a table: μ, shape (d,), and the precision Λ, (d, d)."""

    mean: Floats
    precision: Floats

    @classmethod
    def start(cls, d: int) -> Prior:
        """Return the prior of the start, of d columns near zero.

        With few ratings a chain stays near the start for long. Factors of variance 1 would
        explain more than the ratings vary.
        """
        return cls(np.zeros(d), START * np.eye(d))

    def rated(self, items: Floats, raters: Floats) -> Prior:
        """Return the users' prior with the b̄ at which ratings of mean μ are expected.

        People rate items that they like. So the mean user's factors give too low a mean for
        rated pairs, and only rated pairs are known and predicted. Users with few ratings are
        predicted by the prior. So the prior must have the mean of rated pairs:
        Σ n_i (p̄ · q_i + b̄ + b_i) = 0.

        Parameters
        ----------
        items : float64, shape (m, d), rows (q_i, b_i)
        raters : float64, shape (m,), n_i
        """
        mean = self.mean.copy()
        share = raters / max(raters.sum(), 1.0)
        mean[-1] = -share @ (items[:, :-1] @ mean[:-1] + items[:, -1])
        return Prior(mean, self.precision)


@dataclass(frozen=True, eq=False)
class Link:
    """Regression of a table's rows on their features: W, shape (f, d), and the precision λ."""

    weights: Floats
    precision: float

    @classmethod
    def none(cls, n_features: int, d: int) -> Link:
        """Return the link of the start, which predicts zero."""
        return cls(np.zeros((n_features, d)), 1.0)


def draws(triangles: Floats, shifts: Floats, noise: Floats) -> Floats:
    """Return x ~ N(Λ⁻¹ b, Λ⁻¹) for each precision Λ and shift b.

    Parameters
    ----------
    triangles
        float64, shape (n, d(d+1)/2), lower triangles of positive definite Λ, row by row
    shifts : float64, shape (n, d)
    noise : float64, shape (n, d), standard normal numbers; zeros give the means

    Raises
    ------
    SettingError
        If a precision is not positive definite, for example after too coarse a rounding of the
        sums, or many rounds that lack most of the users.
    """
    n, d = shifts.shape
    tables = np.zeros((n, d + 1, d))
    tables[:, *triangle(d)] = triangles
    tables[:, -1] = shifts
    found = np.empty((n, d))
    check_solved(_fast.draw(tables, noise, found))
    return found


def check_solved(solved: NDArray[np.bool_]) -> None:
    """Raise SettingError unless every precision was positive definite."""
    if not solved.all():
        raise SettingError(
            "the sums of moments are too coarse to draw from, or lack too many users: raise "
            "fractional_bits of the aggregation, or the cohort"
        )


def draw_columns(
    rng: np.random.Generator,
    rows: Floats,
    columns: NDArray[np.intp],
    prior: Prior,
    moments: Floats,
    shifts: Floats,
) -> Floats:
    """Return rows with some columns drawn anew, given the other columns.

    Let B be the columns of a row x. Its conditional distribution is N(x_B + H⁻¹ h, H⁻¹), with
    H = Λ_BB + α Σ w z zᵀ and h = (Λ (μ − x))_B + α Σ w z e. Here z has the factors of B of a
    rater, and e is the residual before the draw. With all columns this is a draw of the row.

    Parameters
    ----------
    rng : generator of the server
    rows : float64, shape (m, d), the rows x
    columns : B, ascending, shape (b,)
    prior : Λ, and μ of each row, shape (m, d)
    moments, shifts
        float64, shapes (m, b(b+1)/2) and (m, b): lower triangles of α Σ w z zᵀ, and α Σ w z e
    """
    pull = (prior.mean - rows) @ prior.precision
    among = prior.precision[np.ix_(columns, columns)][triangle(columns.size)]
    normal = rng.standard_normal(shifts.shape)
    drawn = rows.copy()
    drawn[:, columns] += draws(among + moments, pull[:, columns] + shifts, normal)
    return drawn


def draw_prior(
    rng: np.random.Generator, n: float, total: Floats, products: Floats, link: Link
) -> Prior:
    """Draw (μ, Λ) from the normal-Wishart posterior of n rows (eq. 14) and of their link.

    The rows of W are ~ N(0, (λΛ)⁻¹). So the rows of W inform about Λ like the n rows (Simm et
    al.; see `draw_link`).

    Parameters
    ----------
    rng : generator of the server
    n : float, number of rows, ≥ 0
    total, products : float64, shapes (d,) and (d, d): Σ x and Σ x xᵀ over the rows
    link : link that was subtracted from the rows, in the units of the link's draw
    """
    d, f = total.size, len(link.weights)
    mean = total / max(n, 1.0)
    scatter = products - n * np.outer(mean, mean)
    spread = np.eye(d) + scatter + (BETA_0 * n / (BETA_0 + n)) * np.outer(mean, mean)
    spread += link.precision * (link.weights.T @ link.weights)
    # Bartlett 1933: Λ = T Tᵀ with T = L A, L Lᵀ = W* and A lower triangular
    scale = np.linalg.inv(spread)
    bartlett = np.zeros((d, d))
    bartlett[np.tril_indices(d, -1)] = rng.standard_normal(d * (d - 1) // 2)
    bartlett[np.diag_indices(d)] = np.sqrt(rng.chisquare(d + n + f - np.arange(d)))
    root = np.linalg.cholesky((scale + scale.T) / 2) @ bartlett
    precision = root @ root.T
    centre = n * mean / (BETA_0 + n)
    # N(centre, ((β₀ + n) Λ)⁻¹) from the factor itself: from few rows Λ can be nearly singular
    apart = np.linalg.solve(root.T, rng.standard_normal(d))
    drawn = centre + apart / np.sqrt(BETA_0 + n)
    return Prior(drawn, precision)


def draw_noise(rng: np.random.Generator, n: float, squares: float) -> float:
    """Draw the precision α of the noise from the gamma posterior, given Σ e² of n ratings."""
    return float(rng.gamma(SHAPE_0 + n / 2, 1 / (RATE_0 + squares / 2)))


def draw_weight(rng: np.random.Generator, n: NDArray[np.int64], squares: Floats) -> Floats:
    """Draw users' weights w_u from their gamma posteriors, given each n_u and α Σ e²."""
    return np.asarray(rng.standard_gamma((NU + n) / 2) * (2 / (NU + squares)))


def draw_link(
    rng: np.random.Generator, gram: Floats, cross: Floats, prior: Prior, link: Link
) -> Link:
    """Draw W from the posterior, given the rows V, and then the precision λ of W.

    Simm et al., "Macau: scalable Bayesian factorization with high-dimensional side
    information", 2017, eq. 6: W ~ MN((FᵀF + λI)⁻¹ Fᵀ (V − 1 μᵀ), (FᵀF + λI)⁻¹, Λ⁻¹).

    Parameters
    ----------
    rng : generator of the server
    gram, cross : float64, shapes (f, f) and (f, d): FᵀF and Fᵀ (V − 1 μᵀ)
    prior : prior of the rows around their link
    link : link before, for λ
    """
    n_features, d = cross.shape
    normal = gram + link.precision * np.eye(n_features)
    mean = np.linalg.solve(normal, cross)
    noise = rng.standard_normal((n_features, d))
    among = np.linalg.solve(np.linalg.cholesky(normal).T, noise)
    among_d = np.linalg.solve(np.linalg.cholesky(prior.precision).T, among.T).T
    weights: Floats = np.asarray(mean + among_d, dtype=np.float64)
    size = float(np.sum((weights @ prior.precision) * weights))
    shape, rate = SHAPE_0 + weights.size / 2, RATE_0 + size / 2
    return Link(weights, float(rng.gamma(shape, 1 / rate)))


def draw_linked_prior(
    rng: np.random.Generator, n: float, total: Floats, products: Floats, link: Link
) -> tuple[Prior, Link]:
    """Draw the prior and the link of n rows x from sums alone, x ~ N(μ + Wᵀ g, Λ⁻¹).

    For constant features the link stays. Features are standardised for the draw, so that a
    single λ suits all features.

    Parameters
    ----------
    rng : generator of the server
    n : float, number of rows, > 0
    total, products : float64, shapes (d + f,) and (d + f, d + f): Σ y and Σ y yᵀ, y = (x, g)
    link : link before
    """
    f, d = link.weights.shape
    mean = total / n
    apart = _positive(products - n * np.outer(mean, mean))
    gram, cross, w = apart[d:, d:], apart[d:, :d], link.weights
    around = apart[:d, :d] - cross.T @ w - w.T @ cross + w.T @ gram @ w
    rest = around + n * np.outer(mean[:d], mean[:d])
    spread = np.sqrt(np.maximum(np.diagonal(gram), 0.0) / n)
    some = spread > LEAST
    drawn_before = Link(w[some] * spread[some, None], link.precision)
    prior = draw_prior(rng, n, total[:d], rest, drawn_before)
    if some.any():
        unit = np.divide(1.0, spread, out=np.zeros(f), where=some)
        drawn = draw_link(rng, gram * np.outer(unit, unit), cross * unit[:, None], prior, link)
        link = Link(drawn.weights * unit[:, None], drawn.precision)
    return Prior(prior.mean - mean[d:] @ link.weights, prior.precision), link


def _positive(table: Floats) -> Floats:
    """Return a symmetric table without the negative eigenvalues that rounded sums can have."""
    values, vectors = np.linalg.eigh(table)
    if values[0] >= 0:
        return table
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
