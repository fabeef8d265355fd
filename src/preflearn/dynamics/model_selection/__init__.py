"""Hyperparameters and covariance functions selected by the evidence."""
