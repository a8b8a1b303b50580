"""Weights and models in the formats of other projects; open huggingface/names first."""
