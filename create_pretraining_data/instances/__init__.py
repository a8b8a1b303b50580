"""From a chunk of text to training instances; make_instances is the file to open first."""
