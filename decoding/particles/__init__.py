"""Probabilistic decoding: hidden Markov models as look-ahead, and sequential Monte Carlo.

Read in this order: ``hmm``, ``hmm_training``, ``horizon``, ``hmm_product``, ``proposals``, ``resampling``, ``smc``,
``hmm_look_ahead`` (without a bound on lengths).
"""
