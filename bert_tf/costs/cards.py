"""Lists memory and speed of common NVIDIA cards, from their data sheets.

Cards of compute capability 10 and 12 (B200, RTX 50) are missing because TensorFlow 2.21's own
builds have no code for them; cards older than Ampere (V100, T4) because they have no bfloat16.
"""

from typing import NamedTuple

TERA = 10**12


class Card(NamedTuple):
    """A card with the numbers of its data sheet."""

    name: str
    memory_gib: int
    # Operations per second of matrix products in bfloat16 with sums in float32, without the factor
    # of two for sparsity that data sheets often include.
    bfloat16_flops: float
    source: str


CARDS = {
    "rtx3090": Card("RTX 3090", 24, 71.0 * TERA, "NVIDIA Ampere GA102 whitepaper"),
    "a10": Card("A10", 24, 125.0 * TERA, "NVIDIA A10 data sheet"),
    "l4": Card("L4", 24, 121.0 * TERA, "NVIDIA L4 data sheet"),
    "rtx4090": Card("RTX 4090", 24, 165.2 * TERA, "NVIDIA Ada GPU architecture whitepaper"),
    "l40s": Card("L40S", 48, 362.0 * TERA, "NVIDIA L40S data sheet"),
    "a100-40gb": Card("A100 40GB", 40, 312.0 * TERA, "NVIDIA A100 data sheet"),
    "a100-80gb": Card("A100 80GB", 80, 312.0 * TERA, "NVIDIA A100 data sheet"),
    "h100-pcie": Card("H100 PCIe", 80, 756.0 * TERA, "NVIDIA H100 data sheet"),
    "h100": Card("H100 SXM", 80, 989.0 * TERA, "NVIDIA H100 data sheet"),
    "h200": Card("H200", 141, 989.0 * TERA, "NVIDIA H200 data sheet"),
}
