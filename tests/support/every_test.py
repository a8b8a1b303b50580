"""What every test runs under: two logical devices stand in for two GPUs."""

import ctypes
import gc
import os
import random
import resource
import signal
import types

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import keras
import pytest
import tensorflow as tf
from tensorflow.python.data.ops import structured_function
from tensorflow.python.eager import context
from tensorflow.python.framework import ops
from tensorflow.python.util import tf_stack

from bert_common.errors import InputError
from tests.support.create_data_runs import corpus, small, whole  # noqa: F401 (fixtures of several files)
from tests.support.tiny_models import optimize_graphs, without_graphs

# A job in the background, or under nohup, passes on to its children that these are ignored; the
# programs that tests send them to must not ignore them. A handler is not passed on.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, lambda *_: None)

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)


def pytest_configure(config):
    """In the quick run XLA leaves LLVM's optimizer out, which takes a third of compiling.

    The functions of input pipelines have nothing that AutoGraph could convert; that it looks takes
    a tenth of a tiny run. That every operation of a graph keeps the lines of code that made it is
    another twentieth.
    """
    if config.option.markexpr == "not slow":
        os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
        structured_function.autograph = types.SimpleNamespace(tf_convert=lambda call, _: call)
        context.Context._set_global_seed = set_seed
        lines = tf_stack.extract_stack()
        tf_stack.extract_stack = lambda stacklevel=1: lines


def set_seed(self, seed):
    """Without the other half of `tf.random.set_seed`: it throws away the kernels of all operations.

    They would make a model in half the time, or less where many functions were traced. Only kernels
    of stateful random operations hold a state, which no package and no test uses: a test that did
    would draw other numbers after other tests.
    """
    self._seed, self._rng = seed, random.Random(seed)


def pytest_collection_finish():
    """Collecting garbage takes an eighth of the time: less where what is imported is left alone.

    Of what a test leaves behind in circles, most are graphs, larger than Python's default expects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 5)


def make_input_error(self, *arguments):
    """Fails the test if the message, which programs print as one line, has more."""
    assert not any("\n" in str(argument) for argument in arguments), arguments
    ValueError.__init__(self, *arguments)


InputError.__init__ = make_input_error

# TensorFlow's graph optimizer takes a sixth of a tiny run and changes last bits alone.
optimize_graphs(False)


class Memory:
    """Gives back what was freed when the process has grown by 300 MB."""

    kept = 0

    @classmethod
    def tidy(cls):
        if resident_mib() > cls.kept + 300:
            context.context().clear_kernel_cache()
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)
            cls.kept = resident_mib()


def resident_mib():
    """What the process holds now; 0 where no file says it."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * resource.getpagesize() >> 20
    except OSError:
        return 0


@pytest.fixture(autouse=True)
def forget_graphs():
    """Without this a process grows to 6 GB.

    What `tf.custom_gradient` registers keeps the graphs of each training for ever, and glibc keeps
    what was freed between them.
    """
    registered = ops.gradient_registry._registry
    before = set(registered)
    yield
    for name in set(registered) - before:
        if name.startswith("CustomGradient-"):
            del registered[name]
    Memory.tidy()


@pytest.fixture
def optimized_graphs():
    """Graphs as users have them, where the optimizer itself may be to blame."""
    optimize_graphs(True)
    yield
    optimize_graphs(False)


@pytest.fixture(autouse=True)
def fixed_seed():
    """No test's random numbers depend on the tests before it."""
    tf.random.set_seed(1)


@pytest.fixture
def eagerly():
    """As `without_graphs`."""
    with without_graphs():
        yield


@pytest.fixture
def float64():
    """The whole test computes in float64."""
    policy, floatx = keras.config.dtype_policy(), keras.config.floatx()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(policy)
