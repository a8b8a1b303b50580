"""What a training step costs; open flops first."""
