"""Models that differ in their vocabulary, for benchmarks/vocabulary.py; contest comes first."""
