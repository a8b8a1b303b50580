"""Folders of small models; open model_folders first."""
