"""Decides what of a step XLA compiles, and what TensorFlow computes itself."""

import os
import warnings
from typing import NamedTuple

import tensorflow as tf

from bert_common.errors import InputError

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


NOTHING = Compilation(whole=False, between_products=False, update=False)


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


class Compiled:
    """A function that XLA compiles; where XLA cannot, it runs without, if that is left to us.

    Args:
        make: a function of a `Compilation` that returns the function. A call that fails because
            it cannot be compiled must have changed nothing: its arguments are used again.
        xla: "auto", "on" or "off".
        precision: what the model computes in.
        what: what the warning calls it.

    Attributes:
        function: what `make` returned; None before the first call.

    Raises:
        InputError: XLA cannot compile it, and "on" was asked for.
    """

    def __init__(self, make, xla, precision, what):
        self.make = make
        self.xla = xla
        self.precision = precision
        self.what = what
        self.function = None

    def __call__(self, *arguments):
        """Calls the function; the first call compiles it."""
        if self.function is not None:
            return self.function(*arguments)
        function = self.make(choose_compilation(self.xla, self.precision))
        try:
            result = function(*arguments)
        except _NOT_ABOUT_XLA:
            raise
        except tf.errors.OpError as error:
            if self.xla == "off":
                raise
            self._explain(error)
            function = self.make(NOTHING)
            result = function(*arguments)
        self.function = function
        return result

    def _explain(self, error):
        lines = error.message.splitlines()
        reason = next((line for line in lines if "XLA" in line), lines[0])[:200]
        if self.xla == "on":
            raise InputError(
                f"--xla=on needs what XLA can compile, {self.what} too (--xla=auto goes on "
                f"without). Received: {reason}"
            ) from None
        warnings.warn(
            f"XLA cannot compile {self.what} here, so it runs without: {reason}", stacklevel=3
        )


# Memory that ran out, workers that are gone.
_NOT_ABOUT_XLA = (
    tf.errors.ResourceExhaustedError, tf.errors.UnavailableError, tf.errors.AbortedError,
)  # fmt: skip
