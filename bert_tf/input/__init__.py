"""Records on disk to batches on the devices; open pipeline first, then batch_plan."""
