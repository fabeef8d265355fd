"""Solvers that several methods share, on trusted arrays."""
