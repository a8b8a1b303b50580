"""Reads and writes model folders, also in other projects' formats; open model_folder first."""
