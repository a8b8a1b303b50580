"""Reads and writes model folders, also in other projects' formats; start with model_folder."""
