"""GPUs that TensorFlow cannot use are refused with the reason, those that it can are not."""

import subprocess
import warnings

import pytest
import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.training import gpus

TENSORFLOW_2_21 = ["sm_60", "sm_70", "sm_80", "sm_89", "compute_90"]


@pytest.fixture
def pretend(monkeypatch):
    """Pretends a machine.

    `names` are what nvidia-smi prints, None without that program; `listed` the (major, minor) of
    each GPU that TensorFlow finds; `loadable` libraries; `built_for` capabilities of TensorFlow.
    """

    def start(names, listed=(), loadable=(), built_for=TENSORFLOW_2_21):
        def run(command, **_):
            if names is None:
                raise FileNotFoundError(command[0])
            return subprocess.CompletedProcess(command, 0, "\n".join(names) + "\n", "")

        details = [{"device_name": "NVIDIA", "compute_capability": pair} for pair in listed]
        built = {"cuda_compute_capabilities": built_for}
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.setattr(gpus.subprocess, "run", run)
        monkeypatch.setattr(gpus, "load_library", lambda name: name if name in loadable else None)
        monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: range(len(listed)))
        monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda i: details[i])
        monkeypatch.setattr(tf.sysconfig, "get_build_info", lambda: built)

    return start


ALL = (gpus.DRIVER, *gpus.LIBRARIES)


@pytest.mark.parametrize(
    "loadable, cuda, reason",
    (
        ((), True, "the driver's libcuda.so.1 cannot be loaded"),
        (ALL[:-2], True, "libcudnn.so.9, libnccl.so.2 cannot be loaded: .* extra .gpu."),
        (ALL, True, "TensorFlow lists none, although"),
        (ALL, False, "this TensorFlow was built without CUDA"),
    ),
)
def test_a_gpu_that_tensorflow_does_not_find(pretend, monkeypatch, loadable, cuda, reason):
    pretend(["NVIDIA A100-SXM4-80GB"], loadable=loadable)
    monkeypatch.setattr(tf.test, "is_built_with_cuda", lambda: cuda)
    with pytest.raises(InputError, match=f"--device=cpu .*NVIDIA A100-SXM4-80GB, but .*{reason}"):
        gpus.check_gpus()


def test_some_of_the_gpus_are_missing(pretend, monkeypatch):
    pretend(["NVIDIA A100"] * 2, listed=[(8, 0)], loadable=ALL)
    with pytest.warns(UserWarning, match="finds 1 of this machine's 2 GPUs; nvidia-smi shows"):
        gpus.check_gpus()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gpus.check_gpus()


@pytest.mark.parametrize("hidden", ("", " ", "-1", "-1,0", "NoDevFiles"))
def test_hidden_gpus_are_not_missed(pretend, monkeypatch, hidden):
    pretend(["NVIDIA A100"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", hidden)
    gpus.check_gpus()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(InputError):
        gpus.check_gpus()


def test_no_nvidia_smi(pretend, monkeypatch):
    """A machine without it has a GPU if there is a device."""
    pretend(None)
    monkeypatch.setattr(gpus.Path, "glob", lambda self, pattern: [])
    gpus.check_gpus()
    monkeypatch.setattr(gpus.Path, "glob", lambda self, pattern: ["/dev/nvidia0"])
    with pytest.raises(InputError, match="Received: an NVIDIA GPU"):
        gpus.check_gpus()


@pytest.mark.parametrize(
    "capability, built_for, runs",
    (
        ((6, 1), TENSORFLOW_2_21, True),
        ((7, 5), TENSORFLOW_2_21, True),
        ((8, 6), TENSORFLOW_2_21, True),
        ((9, 0), TENSORFLOW_2_21, True),
        ((5, 2), TENSORFLOW_2_21, False),
        ((10, 0), TENSORFLOW_2_21, False),
        ((12, 0), TENSORFLOW_2_21, False),
        ((12, 0), [*TENSORFLOW_2_21, "sm_120"], True),
        ((10, 0), ["sm_100a", "compute_120"], True),
        ((10, 3), ["sm_100a", "compute_120"], False),
        ((10, 3), ["sm_100f"], True),
        ((8, 0), ["sm_86"], False),
        ((12, 0), [], True),
    ),
)
def test_compute_capability(capability, built_for, runs):
    assert gpus.has_code(capability, built_for) == runs


def test_a_gpu_without_code(pretend):
    pretend(["NVIDIA"] * 2, [(8, 0), (12, 0)])
    with pytest.raises(InputError, match="--ignore_compute_capability .* capability 12.0, .*sm_89"):
        gpus.check_gpus()
    gpus.check_gpus(ignore_compute_capability=True)
    pretend(["NVIDIA"] * 2, [(8, 0), (12, 0)], built_for=["sm_80", "sm_120"])
    gpus.check_gpus()
