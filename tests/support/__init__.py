"""What several files of tests share; open programs first."""
