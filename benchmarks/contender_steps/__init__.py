"""What the contenders of benchmarks/training.py compute; project is the file to open first."""
