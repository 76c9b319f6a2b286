"""Diversity of a set of texts by the spectrum of their similarities (Wang and Chan 2019).

Texts that all say the same span one direction, and one value of the spectrum holds all; texts that have
nothing in common span as many as they are, each with an equal share.
"""

from __future__ import annotations

import numpy as np

from tellapart.metrics.score import Floats


def eigenvalues(kernels: Floats) -> Floats:
    """Eigenvalues of symmetric matrices, ascending: (…, m, m) -> (…, m)."""
    return np.asarray(np.linalg.eigvalsh(kernels), dtype=np.float64)


def square_roots(values: Floats) -> Floats:
    """Square roots of eigenvalues (…, m); what is below 0, or above it by rounding alone, counts as 0.

    A root turns a rounding error of 1e-16 into 1e-8, which would give copies of one text some diversity.
    """
    largest = values.max(axis=-1, keepdims=True)
    rounding = np.maximum(largest, 0) * values.shape[-1] * np.finfo(np.float64).eps
    return np.sqrt(np.where(values > rounding, values, 0.0))


def spectral_diversity(spectrum: Floats) -> Floats:
    """From 0 (one value holds all) to 1 (all m are equal): -log_m of the largest share, (…, m) -> (…).

    A spectrum of zeros alone has no share to speak of, and counts as 0.
    """
    largest, total = spectrum.max(axis=-1), spectrum.sum(axis=-1)
    ratio = np.divide(total, largest, out=np.ones_like(total), where=largest > 0)
    return np.asarray(np.log(ratio) / np.log(spectrum.shape[-1]))
