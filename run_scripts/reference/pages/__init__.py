"""Writes docs/results.md from the ledger; open page first, then questions."""
