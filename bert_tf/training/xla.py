"""Chooses which parts of a step XLA compiles; TensorFlow computes the others itself."""

import os
import warnings
from typing import NamedTuple

import tensorflow as tf

from bert_common.errors import InputError

# Extends auto-clustering to CPUs, and excludes matrix products from it.
CLUSTERING_FLAGS = "--tf_xla_cpu_global_jit --tf_xla_ops_to_cluster=FUSIBLE"


class Compilation(NamedTuple):
    """What XLA compiles."""

    whole: bool  # the forward and backward pass, as one computation
    # TensorFlow chooses what of both passes is compiled, except matrix products.
    auto_clustering: bool
    update: bool  # the optimizer's update

    def __str__(self):
        if self.auto_clustering:
            return "auto-clustering"
        return "on" if self.whole else "off"


NOTHING = Compilation(whole=False, auto_clustering=False, update=False)


def choose_compilation(xla, precision):
    """What "auto", "on" or "off" means for a model that computes in this precision.

    "auto" compiles all, with one exception: on a CPU XLA's matrix products in bfloat16 take twice
    the time of oneDNN's, which TensorFlow calls, so there only the rest is compiled.
    """
    cpu = not tf.config.list_physical_devices("GPU")
    slow_products = cpu and precision in ("bfloat16", "float16")
    if xla == "auto" and slow_products:
        return Compilation(whole=False, auto_clustering=True, update=True)
    return Compilation(whole=xla != "off", auto_clustering=False, update=xla != "off")


def enable_auto_clustering():
    """Has XLA compile the operations between matrix products in every graph of this process.

    It has no effect after the first operation: TensorFlow reads these flags once.
    """
    given = os.environ.get("TF_XLA_FLAGS", "")
    os.environ["TF_XLA_FLAGS"] = f"{CLUSTERING_FLAGS} {given}".strip()  # the user's flags win
    tf.config.optimizer.set_jit("autoclustering")


class Compiled:
    """A function that XLA compiles; under "auto" it runs without XLA if that fails.

    Args:
        make: a function of a `Compilation` that returns the function. A call that XLA cannot
            compile must have changed nothing, as it is repeated without XLA.
        xla: "auto", "on" or "off".
        precision: what the model computes in.
        what: what it is called in messages.

    Attributes:
        function: what `make` returned; None before the first call.

    Raises:
        InputError: XLA cannot compile it, and `xla` is "on".
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
                f"--xla=on requires that XLA can compile {self.what} (--xla=auto falls back to "
                f"running without XLA). Received: {reason}"
            ) from None
        warnings.warn(
            f"XLA cannot compile {self.what} here, so it runs without: {reason}", stacklevel=3
        )


# Out of memory, or a worker is lost.
_NOT_ABOUT_XLA = (
    tf.errors.ResourceExhaustedError, tf.errors.UnavailableError, tf.errors.AbortedError,
)  # fmt: skip
