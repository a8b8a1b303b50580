"""Rows that teach and measure the order of sentences; open lessons first, then lesson_rows."""
