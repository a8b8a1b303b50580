"""Command lines and files that programs must refuse; open bad_input first."""
