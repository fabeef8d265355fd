"""Likelihoods of an outcome given a difference of scores, and the scalar integrals that
inference needs."""
