"""Experiments on the networks of the zoo, as functions that return their results."""
