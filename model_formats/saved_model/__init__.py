"""Models as TensorFlow SavedModels; open export first."""
