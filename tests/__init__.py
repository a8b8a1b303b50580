"""The tests, a folder for each room of the project; open conftest first."""
