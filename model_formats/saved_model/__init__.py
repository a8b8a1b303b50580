"""Exports models as TensorFlow SavedModels; start with export."""
