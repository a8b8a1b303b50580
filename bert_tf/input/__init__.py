"""Turns records on disk into batches on the devices; open pipeline first, then batch_plan."""
