"""Named-entity recognition; open task first."""
