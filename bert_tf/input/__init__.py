"""From records on disk to batches on the devices; pipeline is the file to open first."""
