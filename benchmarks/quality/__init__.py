"""How well models learn, by what they were trained with; open ladder first."""
