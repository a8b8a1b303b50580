"""Settings of every test: two logical devices stand in for two GPUs."""

import os
import signal

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import keras
import pytest
import tensorflow as tf
from data_runs import corpus, small, whole  # noqa: F401 (fixtures of several files)

# A job in the background, or under nohup, hands on to its children that these are ignored; the
# programs that tests send them to must not. A handler is not handed on.
for number in (signal.SIGINT, signal.SIGHUP):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, lambda *_: None)

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)


@pytest.fixture(scope="module", autouse=True)
def graph_optimizer(request):
    """TensorFlow's graph optimizer costs a tiny model a fifth of its run and changes last bits only.

    A file whose tests compare runs bit for bit, or with programs in processes of their own, says
    `GRAPH_OPTIMIZER = True`: there graphs are optimized as users' are.
    """
    wanted = getattr(request.module, "GRAPH_OPTIMIZER", False)
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": not wanted})


@pytest.fixture(autouse=True)
def fixed_seed():
    """No test's random numbers depend on the tests before it."""
    tf.random.set_seed(1)


@pytest.fixture
def float64():
    """The whole test computes in float64."""
    policy, floatx = keras.config.dtype_policy(), keras.config.floatx()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(policy)
