"""Model folders, and weights in the formats of other projects; open model_folder first."""
