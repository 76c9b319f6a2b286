"""What log p(c|I) is measured against, so that sentences which are likely of any picture lose their lead.

It changes which sentence a picture finds. Which picture a sentence finds stays the same, for what is taken
off is the same for all pictures.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp

from tellapart.arrays import Float, Int


def log_marginal(sampled: Float[np.ndarray, "captions samples"]) -> Float[np.ndarray, " captions"]:
    """The log P(w) of m-RNN's Eq. 7: P(w) = Σ P(w|I') P(I') over sampled training images, each as likely.

    The paper leaves the constant P(I') out; with it, Eq. 7 is pointwise mutual information to the letter.
    """
    return np.asarray(logsumexp(sampled.astype(np.float64), axis=1) - np.log(sampled.shape[1]))


def pointwise_information(
    scores: Float[np.ndarray, "captions pictures"], log_probabilities: Float[np.ndarray, " captions"]
) -> Float[np.ndarray, "captions pictures"]:
    """The log p(c|I) - log p(c): Eq. 7 of m-RNN where p(c) is its marginal, PMI by that of a language model.

    With p(c|Ī), Ī the mean training image, it is what Kiros et al. 2014 divide by, over the whole sentence.
    """
    return np.asarray(scores - log_probabilities[:, None].astype(scores.dtype))


def perplexity_ratio(
    scores: Float[np.ndarray, "captions pictures"],
    of_mean_image: Float[np.ndarray, " captions"],
    lengths: Int[np.ndarray, " captions"],
) -> Float[np.ndarray, "captions pictures"]:
    """Kiros et al. 2014: the perplexity under the mean training image over that under the image, as a log.

    A perplexity is a mean over words: (log p(c|I) - log p(c|Ī)) / words, unlike Eq. 7 and PMI.

    Args:
        scores: log p(c|I).
        of_mean_image: log p(c|Ī), with Ī the mean of the features of all training images.
        lengths: words of each caption, its end sign included.
    """
    return np.asarray(pointwise_information(scores, of_mean_image) / lengths[:, None].astype(scores.dtype))
