"""What XLA compiled is kept in a folder and used by the next start."""

import os

import pytest
import tensorflow as tf
from programs import PretrainingJob, arrays, assert_same, one_line

from bert_tf.training import xla
from run_scripts.flags.pretrain import PretrainingFlags
from run_scripts.flags.training import compilation_cache


@pytest.mark.parametrize(
    "given, on_gpus, on_a_cpu",
    ((None, "out/compilation_cache", None), ("none", None, None), ("here", "here", "here")),
)
def test_where_it_is(given, on_gpus, on_a_cpu):
    flags = PretrainingFlags(output_dir="out", compilation_cache_dir=given)
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
        f"--tf_xla_persistent_cache_directory={folder} --tf_xla_persistent_cache_directory=mine"
    )
    assert os.environ["XLA_FLAGS"] == f"--xla_gpu_per_fusion_autotune_cache_dir={folder}"


def test_a_folder_that_cannot_be_made(tmp_path, capsys):
    job = PretrainingJob(tmp_path)
    (tmp_path / "file").write_text("")
    assert job.run(xla="auto", compilation_cache_dir=tmp_path / "file") == 1
    assert "--compilation_cache_dir must be a folder that can be written to" in one_line(capsys)


@pytest.mark.slow
def test_the_second_start_compiles_nothing(tmp_path):
    job = PretrainingJob(tmp_path)
    cache = tmp_path / "cache"
    flags = {"xla": "on", "num_train_steps": 3, "compilation_cache_dir": cache}
    outputs = [tmp_path / name for name in ("first", "second", "without")]

    def run(output, **changes):
        argv = job.argv(**{**flags, **changes, "output_dir": output})
        program = "import sys; from run_scripts import pretrain; sys.exit(pretrain.main(sys.argv))"
        done = job.run_apart("-c", program, *argv[1:])
        assert done.returncode == 0, done.stderr
        return {path.name: path.stat().st_mtime_ns for path in cache.rglob("*.pb")}

    kept = run(outputs[0])
    assert len(kept) >= 2  # the two halves of a step
    assert run(outputs[1]) == kept
    run(outputs[2], compilation_cache_dir="none")
    for output in outputs[1:]:
        assert_same(arrays(output, 3), arrays(outputs[0], 3))
