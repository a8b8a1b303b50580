"""The graphs of exported models, which take texts; open served_model first."""
