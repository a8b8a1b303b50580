"""Chooses which parts of a step XLA compiles; TensorFlow runs the other parts itself."""

import os
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import tensorflow as tf

from bert_common.errors import InputError
from bert_common.import_tensorflow import add_flags
from bert_tf.training.distribution import gather_texts

# The type of the object that `compiled_by_all` makes.
Made = TypeVar("Made")

# XLA's caches of whole compiled programs, and of the autotuning of each kernel on a GPU.
CACHE_FLAGS = {
    "TF_XLA_FLAGS": "--tf_xla_persistent_cache_directory",
    "XLA_FLAGS": "--xla_gpu_per_fusion_autotune_cache_dir",
}


class Compilation(NamedTuple):
    """The parts of a step that XLA compiles."""

    whole: bool  # the forward and backward pass, as one computation
    # TensorFlow chooses the compiled parts of both passes, without matrix products.
    auto_clustering: bool
    update: bool  # the optimizer's update

    def __str__(self) -> str:
        if self.auto_clustering:
            return "auto-clustering"
        return "on" if self.whole else "off"


NOTHING = Compilation(whole=False, auto_clustering=False, update=False)


def choose_compilation(xla: str, precision: str) -> Compilation:
    """Resolves "auto", "on" or "off" for a model that computes in this precision.

    "auto" compiles everything except bfloat16 and float16 matrix products on a CPU, as XLA's
    bfloat16 products take twice as long there as oneDNN's, which TensorFlow calls.
    """
    cpu = not tf.config.list_physical_devices("GPU")
    slow_products = cpu and precision in ("bfloat16", "float16")
    if xla == "auto" and slow_products:
        return Compilation(whole=False, auto_clustering=True, update=True)
    return Compilation(whole=xla != "off", auto_clustering=False, update=xla != "off")


def enable_auto_clustering() -> None:
    """Has XLA compile the operations between matrix products in every graph of this process.

    On a CPU this requires the flags that `import_tensorflow` sets.
    """
    tf.config.optimizer.set_jit("autoclustering")


def keep_compiled(folder: str, gpus: Iterable[str] = ()) -> None:
    """Has XLA cache compiled programs in a folder and reuse the programs in it.

    Call it before TensorFlow first lists its devices, which is when it reads the flags. Users of
    XLA must separate its versions, and XLA refuses to run a cached program of a different kind of
    GPU, so each version of TensorFlow and each kind of GPU has its own subfolder. Raises an
    InputError if the folder is not writable, because XLA could not compile anything then.
    """
    kinds = [re.sub(r"[^A-Za-z0-9.]+", "-", name) for name in sorted(set(gpus))]
    name = "-".join(["tensorflow", tf.__version__, *kinds])
    folder = os.path.abspath(os.path.join(folder, name))
    try:
        os.makedirs(folder, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InputError(
            "--compilation_cache_dir must be a folder that can be written to, or none. "
            f"Received: {error}"
        ) from None
    # Otherwise the value would end at a space.
    quoted = '"' + folder.replace("\\", r"\\").replace('"', r"\"") + '"'
    for variable, flag in CACHE_FLAGS.items():
        add_flags(variable, f"{flag}={quoted}")


def compiled_by_all(
    make: Callable[[Compilation], Made],
    compile: Callable[[Made], Any],
    xla: str,
    precision: str,
    strategy: tf.distribute.Strategy,
    what: str,
) -> Made:
    """Makes the object that all replicas run, compiled by XLA if all workers can compile it.

    All workers must call it.

    Args:
        compile: takes the result of `make` and has XLA compile it on every device of this worker,
            without changing anything and without communication.
        what: the object's name in messages.

    Raises:
        InputError: XLA cannot compile it on some worker, and `xla` is "on".
        tf.errors.OpError: an error unrelated to XLA; other workers notice that this one is lost.
    """
    compilation = choose_compilation(xla, precision)
    made = make(compilation)
    if compilation == NOTHING:
        return made
    try:
        compile(made)
        problem = ""
    except tf.errors.OpError as error:
        if not is_about_xla(error):
            raise
        problem = first_line_about_xla(error)
    problems = [text for text in gather_texts(strategy, problem) if text]
    if not problems:
        return made
    _refuse_or_warn(xla, what, problems[0])
    return make(NOTHING)


class Compiled:
    """A function that XLA compiles, or that runs without XLA under "auto" if XLA fails.

    Use it for functions without communication, as each worker decides separately.

    Args:
        make: takes a `Compilation` and returns the function. A call that XLA cannot compile must
            not change anything, because it is repeated without XLA.
        xla: "auto", "on" or "off".
        precision: the precision in which the model computes.
        what: the function's name in messages.

    Attributes:
        function: the result of `make`; None before the first call.

    Raises:
        InputError: XLA cannot compile it, and `xla` is "on".
    """

    def __init__(
        self, make: Callable[[Compilation], Callable[..., Any]], xla: str, precision: str, what: str
    ) -> None:
        self.make = make
        self.xla = xla
        self.precision = precision
        self.what = what
        self.function: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Calls the function; the first call compiles it."""
        if self.function is not None:
            return self.function(*arguments)
        function = self.make(choose_compilation(self.xla, self.precision))
        try:
            result = function(*arguments)
        except tf.errors.OpError as error:
            if self.xla == "off" or not is_about_xla(error):
                raise
            _refuse_or_warn(self.xla, self.what, first_line_about_xla(error))
            function = self.make(NOTHING)
            result = function(*arguments)
        self.function = function
        return result


# Errors that mean that memory ran out or a worker is lost.
_OTHER_ERRORS = (
    tf.errors.ResourceExhaustedError, tf.errors.UnavailableError, tf.errors.AbortedError,
)  # fmt: skip

# Texts in errors of a GPU's driver or of the communication between GPUs, which would recur without
# XLA.
_OTHER_TEXTS = ("CUDA_ERROR", "cudaError", "NCCL", "ncclSystemError", "Collective ops is aborted")

# Exceptions to these texts: errors for code that XLA compiled and this GPU cannot run.
_CODE_TEXTS = (
    "CUDA_ERROR_INVALID_PTX", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "CUDA_ERROR_NO_BINARY_FOR_GPU",
)  # fmt: skip


def is_about_xla(error: tf.errors.OpError) -> bool:
    """Returns True if an error of a compiled function may go away without XLA."""
    if isinstance(error, _OTHER_ERRORS):
        return False
    if any(text in error.message for text in _CODE_TEXTS):
        return True
    return not any(text in error.message for text in _OTHER_TEXTS)


def first_line_about_xla(error: tf.errors.OpError) -> str:
    """Returns the first line of an error's message that names XLA, or else the first line."""
    lines = error.message.splitlines() or [""]
    # Never empty, because an empty text means no problem.
    return next((line for line in lines if "XLA" in line), lines[0])[:300] or type(error).__name__


def _refuse_or_warn(xla, what, reason):
    if xla == "on":
        raise InputError(
            f"--xla=on requires that XLA can compile {what} (--xla=auto falls back to running "
            f"without XLA). Received: {reason}"
        )
    warnings.warn(f"XLA cannot compile {what} here, so it runs without: {reason}", stacklevel=4)
