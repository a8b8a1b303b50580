"""Handles what can end training early: signals, memory, non-finite steps, a removed folder."""
