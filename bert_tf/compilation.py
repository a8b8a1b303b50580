"""Decides what of a step XLA compiles, and what TensorFlow computes itself."""

import os
from typing import NamedTuple

import tensorflow as tf

# Has XLA compile on CPUs too, once clustering is on, and only what is no matrix product.
CLUSTERING_FLAGS = "--tf_xla_cpu_global_jit --tf_xla_ops_to_cluster=FUSIBLE"


class Compilation(NamedTuple):
    """What XLA compiles.

    Attributes:
        whole: the forward and backward pass, as one computation.
        between_products: of the forward and backward pass what lies between matrix products.
        update: the optimizer's update.
    """

    whole: bool
    between_products: bool
    update: bool

    def __str__(self):
        parts = {"between the products": self.between_products, "off": not self.whole}
        return next((text for text, applies in parts.items() if applies), "on")


def choose_compilation(xla, precision):
    """What "auto", "on" or "off" means for a model that computes in this precision.

    "auto" compiles all, but for one case: on a CPU XLA's bfloat16 products take twice the time of
    oneDNN's, which TensorFlow calls, so there it compiles what lies between them.
    """
    cpu = not tf.config.list_physical_devices("GPU")
    slow_products = cpu and precision in ("bfloat16", "float16")
    if xla == "auto" and slow_products:
        return Compilation(whole=False, between_products=True, update=True)
    return Compilation(whole=xla != "off", between_products=False, update=xla != "off")


def compile_between_products():
    """Has XLA compile what lies between the matrix products of every graph of this process.

    To be called before the first operation: TensorFlow reads these flags once. Where it comes too
    late, graphs run as they would without it.
    """
    given = os.environ.get("TF_XLA_FLAGS", "")
    os.environ["TF_XLA_FLAGS"] = f"{CLUSTERING_FLAGS} {given}".strip()  # the user's own win
    tf.config.optimizer.set_jit("autoclustering")
