"""Makes rows that teach and measure sentence order; open lessons first, then lesson_rows."""
