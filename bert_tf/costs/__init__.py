"""What a step costs: its operations, and the speeds of cards; open flops first."""
