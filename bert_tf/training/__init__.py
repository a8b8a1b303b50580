"""The training loop and its parts; open loop first, then interfaces and step."""
