"""What XLA compiled is kept in a folder for the next start."""

import dataclasses
import os

import pytest
import tensorflow as tf

from bert_common.errors import InputError
from bert_tf.training import xla
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.flags.training import compilation_cache
from tests.support.paths import printed_by
from tests.support.programs import PretrainingJob, arrays, assert_same


@pytest.mark.parametrize(
    "given, on_gpus, on_a_cpu",
    ((None, "out/compilation_cache", None), ("none", None, None), ("here", "here", "here")),
)
def test_where_it_is(given, on_gpus, on_a_cpu):
    flags = PretrainFlags(output_dir="out", compilation_cache_dir=given)
    off = dataclasses.replace(flags, xla="off")
    assert compilation_cache(off, gpus=True) is None
    assert compilation_cache(flags, gpus=True) == on_gpus
    assert compilation_cache(flags, gpus=False) == on_a_cpu


def test_flags_of_the_environment(tmp_path, monkeypatch):
    """Each version of TensorFlow has its own folder; the user's flags come last, so they win."""
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_persistent_cache_directory=mine")
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    xla.keep_compiled(str(tmp_path))
    folder = tmp_path / f"tensorflow-{tf.__version__}"
    assert folder.is_dir()
    assert os.environ["TF_XLA_FLAGS"] == (
        f'--tf_xla_persistent_cache_directory="{folder}" --tf_xla_persistent_cache_directory=mine'
    )
    assert os.environ["XLA_FLAGS"] == f'--xla_gpu_per_fusion_autotune_cache_dir="{folder}"'


def test_other_gpus_have_another_folder(tmp_path, monkeypatch):
    """XLA's key of a program does not name the GPU, and a program runs on its kind alone."""
    for variable in xla.CACHE_FLAGS:
        monkeypatch.setenv(variable, "")
    a100, h100 = "NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3"
    for gpus in ([a100] * 8, [h100], [h100, a100], [a100, h100]):
        xla.keep_compiled(tmp_path, gpus)
    version = f"tensorflow-{tf.__version__}"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        f"{version}-NVIDIA-A100-SXM4-80GB",
        f"{version}-NVIDIA-A100-SXM4-80GB-NVIDIA-H100-80GB-HBM3",
        f"{version}-NVIDIA-H100-80GB-HBM3",
    ]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    message = "--compilation_cache_dir must be a folder that can be written to, or none. Received: "
    with pytest.raises(InputError, match=message):
        xla.keep_compiled(tmp_path / "file")


# Compiles a function; prints how many programs the folder of the first argument holds then.
KEEP = """
import pathlib, sys
from bert_common.import_tensorflow import import_tensorflow

def set_flags():
    from bert_tf.training.xla import keep_compiled
    keep_compiled(sys.argv[1])

tf = import_tensorflow(set_flags)
tf.function(lambda x: x + 1.0, jit_compile=True)(tf.ones([3]))
print(len([*pathlib.Path(sys.argv[1]).rglob("*.pb")]))
"""


@pytest.mark.slow
def test_a_folder_with_spaces_and_quotes(tmp_path):
    """TensorFlow splits the flags in the environment at spaces, unless they are quoted."""
    assert printed_by("-c", KEEP, tmp_path / 'my "own" \\ folder').split() == ["1"]


def run(job, **flags):
    """Runs the program in a process of its own."""
    program = "import sys; from run_scripts import pretrain; sys.exit(pretrain.main(sys.argv))"
    printed_by("-c", program, *job.argv(**flags)[1:])


def kept(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.rglob("*.pb")}


@pytest.mark.slow
def test_the_second_start_compiles_nothing(tmp_path):
    job, cache = PretrainingJob(tmp_path), tmp_path / "cache"
    flags = {"xla": "on", "num_train_steps": 3}
    first, second, without = (tmp_path / name for name in ("first", "second", "without"))
    run(job, **flags, output_dir=first, compilation_cache_dir=cache)
    files = kept(cache)
    assert len(files) >= 2  # the two halves of a step
    run(job, **flags, output_dir=second, compilation_cache_dir=cache)
    assert kept(cache) == files
    run(job, **flags, output_dir=without)
    for output in (second, without):
        assert_same(arrays(output, 3), arrays(first, 3))


@pytest.mark.slow
def test_auto_clustering_of_the_program(tmp_path):
    """With bfloat16 on a CPU, XLA compiles many clusters, not the update alone."""
    job, cache = PretrainingJob(tmp_path), tmp_path / "cache"
    flags = {"xla": "auto", "precision": "bfloat16", "num_train_steps": 3}
    run(job, **flags, compilation_cache_dir=cache)
    assert len(kept(cache)) > 5
