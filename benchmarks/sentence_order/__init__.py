"""Makes lessons in sentence order for a model that does not learn it from natural text alone."""
