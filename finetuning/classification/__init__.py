"""Classification and regression of texts and of pairs; task is the file to open first."""
