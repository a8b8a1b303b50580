"""Writes what TensorBoard shows of a training; open reporter first."""
