"""A few small files that every package may use: errors, files, locks, processes, progress."""
