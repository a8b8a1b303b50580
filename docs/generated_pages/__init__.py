"""Generates the pages of docs/ that are made from the code; start reading at pages."""
