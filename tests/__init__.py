"""The tests, a folder for each room of the project; open support/every_test first."""
