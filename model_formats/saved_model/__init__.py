"""Exports models as TensorFlow SavedModels; open export first."""
