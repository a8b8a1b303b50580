"""The training loop and all that it needs; open loop first, then interfaces and step."""
