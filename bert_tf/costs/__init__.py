"""Computes the costs of a training step; open flops first."""
