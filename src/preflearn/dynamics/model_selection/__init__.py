"""Hyperparameters and covariance functions chosen by the evidence."""
