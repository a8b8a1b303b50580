"""Classification and regression of texts and pairs of texts; task is the file to open first."""
