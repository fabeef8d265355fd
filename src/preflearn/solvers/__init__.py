"""Solvers that several methods share; they do not check their input."""
