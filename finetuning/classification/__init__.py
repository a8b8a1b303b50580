"""Classification and regression of texts and pairs of texts; open task first."""
