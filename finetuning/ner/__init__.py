"""Named-entity recognition; task is the file to open first."""
