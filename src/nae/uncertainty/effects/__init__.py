"""How sure effects are: a band for every curve, and whether a feature can be told from noise.

The rows are fitted once more, by an additive model whose curves have few nodes and are smoothed: a penalty on bends for
numbers, a pull towards zero for levels. Such a fit is linear in the targets (for other links, after a few reweighted
steps), so that it comes with a covariance, which no ensemble of networks has. Members agree with each other because
they share most of their rows; their spread says little about the truth.

- *Smoothing.* Each feature is smoothed as little as either of two rules asks for: restricted maximum likelihood, and
  the smoothing with which the fit comes closest to the curve that the model shows.
- *Covariance.* The noise is estimated from the residuals of every row, so it may differ from row to row (a sandwich).
  The variance of what smoothing hides, under the prior that maximum likelihood finds, is added (Wahba, Nychka): over a
  curve, and on average, the band then holds the truth as often as it says.
- *Chance.* The fitted curve of a feature is compared with its covariance (Wald), once stiff and once flexible, so that
  the target has no say in how smooth it is. Products of features, which an additive fit leaves out, are tested on its
  residuals. A feature can be told from noise if either test says so, at half of the level each.
"""

from nae.uncertainty.effects.measuring import EffectRows, measure_effects

__all__ = ["EffectRows", "measure_effects"]
