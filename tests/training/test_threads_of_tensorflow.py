"""The flag --num_threads, in a process of its own, as TensorFlow takes it before it begins."""

import pytest

from tests.support.paths import printed_by

PROGRAM = """
from run_scripts.flags.devices import DeviceFlags, start_tensorflow
start_tensorflow(DeviceFlags(device="cpu", num_threads=1))
import tensorflow as tf
tf.linalg.matmul(tf.ones([64, 64]), tf.ones([64, 64]))
threading = tf.config.threading
print(threading.get_intra_op_parallelism_threads(), threading.get_inter_op_parallelism_threads())
"""


@pytest.mark.slow
def test_tensorflow_computes_with_as_many_threads_as_are_allowed():
    assert printed_by("-c", PROGRAM).split() == ["1", "1"]
