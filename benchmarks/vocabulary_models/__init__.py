"""Models that differ in their vocabulary, for benchmarks/vocabulary.py; open contest first."""
