"""A task that no package of the project knows, as a user would add it; open head first."""
