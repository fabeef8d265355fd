"""Covariance functions of a score in time, each also as a linear state-space model."""
