"""Probabilistic decoding: hidden Markov models as look-ahead, and sequential Monte Carlo.

Invariant: the mean of the particles' weights is an unbiased estimate of the probability that the model's text is
accepted. Cost: one call of the model for all unfinished particles in a step; look-ahead takes H² operations for each
row and H hidden states.

Read in this order: ``hmm``, ``hmm_training``, ``horizon``, ``hmm_product``, ``proposals``, ``resampling``, ``smc``,
``hmm_look_ahead`` (without a bound on lengths).
"""
