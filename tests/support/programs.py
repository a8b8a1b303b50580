"""Runs the training programs on small data as users do, and reads what they wrote.

As a program it is run_pretraining, or what PROGRAM names, that sends itself a signal:

    python -m tests.support.programs SIGKILL step 7 --bert_config_file=...     after 7 updates, when
                                                                               no file is written
    python -m tests.support.programs SIGKILL any 7 --bert_config_file=...      after 7 updates
    python -m tests.support.programs SIGKILL index 6 --bert_config_file=...    amid model.ckpt-6
    python -m tests.support.programs SIGTERM any 7 --bert_config_file=...      it may save first
"""

import functools
import json
import os
import shlex
import signal
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from bert_common.background import NAME as BACKGROUND
from bert_tf.summaries.reporter import Reporter
from run_scripts import classifier, extract_features, pretrain, programs
from tests.support.paths import environment_with, run_python
from tests.support.record_files import DYNAMIC, FORMAT, PACKED, PACKED_DYNAMIC, make_files
from tests.support.task_data import SENTENCE_PIECES, single_rows, write_splits
from tests.support.tiny_models import optimize_graphs, write_config

# Several runs in one process trace the same functions anew, which TensorFlow warns of.
tf.get_logger().setLevel("ERROR")

SENTENCE = {"bert": "next_sentence", "albert": "sentence_order"}
DROPOUT = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}

# The rate depends on num_train_steps: a run that is to be stopped sooner gets the same flags.
RUN = {
    "num_train_steps": 20,
    "save_checkpoints_steps": 6,
    "save_summary_steps": 3,
    "keep_checkpoint_max": 0,
    "xla": "off",  # compiles sooner
}
# What saves memory, but for a second device.
SAVING = {"precision": "bfloat16", "recompute": "block", "gradient_accumulation_steps": 2}
PACKED_SIZES = {"max_seq_length": 32, "max_predictions_per_seq": 8}
# Everything that saves memory at once is on packed rows.
RECORDS_OF_EVERY_KIND = pytest.mark.parametrize(
    "record_format, flags",
    (
        (PACKED_DYNAMIC, {**SAVING, **PACKED_SIZES, "distribution_strategy": "mirrored"}),
        (PACKED, {"xla": "auto"}),
        (DYNAMIC, {"bucket_boundaries": "8,12"}),
        (FORMAT, {"precision": "float16", "xla": "auto"}),
    ),
    ids=("packed dynamic", "packed", "dynamic", "plain"),
)


class Job:
    """A folder with configurations, and ways to run a program on it in this process.

    Args:
        folder: a `Path`, where everything is.
        sizes: changes to `SIZES` and to the one layer of the models' configurations.
    """

    name = main = None  # of the program

    def __init__(self, folder, **sizes):
        self.folder = folder
        self.output = folder / "output"
        self.configure(**sizes)

    def configure(self, **sizes):
        """Writes bert.json and albert.json."""
        for kind in ("bert", "albert"):
            write_config(self.folder / f"{kind}.json", kind, **sizes)

    def argv(self, kind="bert", **flags):
        """The command line; a flag that is None is left out."""
        config = {f"{kind}_config_file": self.folder / f"{kind}.json"}
        values = {**config, "output_dir": self.output, **self.flags(), **flags}
        return [self.name] + [f"--{k}={v}" for k, v in values.items() if v is not None]

    def run(self, *arguments, **flags):
        """Runs the program; returns its exit status."""
        return self.main(self.argv(*arguments, **flags))

    def run_apart(self, *arguments, environment=None, **options):
        """Runs Python with the arguments, with `options` of `subprocess.run`; what that returns."""
        return run_python(*arguments, env=environment_with(**(environment or {})), **options)

    def kill(self, where, step, number="SIGKILL", **flags):
        """Runs the program in another process that gets a signal at a place as above."""
        flags = self.argv(**flags)[1:]
        program = self.name.removesuffix(".py")
        same = {"OPTIMIZE_GRAPHS": "" if _graphs_are_plain() else "1", "PROGRAM": program}
        killed = self.run_apart(__file__, number, where, step, *flags, environment=same)
        assert killed.returncode == (-9 if number == "SIGKILL" else 0), killed.stderr

    def stop(self, monkeypatch, number, step, **flags):
        """Runs the program, which gets the signal `number` after `step` updates."""
        # Training's own handler must end the run, not the one that was there before.
        kept = signal.signal(number, lambda *_: None)
        try:
            with monkeypatch.context() as patch:
                signal_at_step(number, step, patch.setattr)
                return self.run(**flags)
        finally:
            signal.signal(number, kept)


class PretrainingJob(Job):
    """run_pretraining on records of random contents in the given format."""

    name, main = "run_pretraining.py", staticmethod(pretrain.main)

    def __init__(self, folder, record_format=FORMAT, **sizes):
        super().__init__(folder, **sizes)
        self.files = make_files(folder, (20, 20), record_format)

    def make_held_out(self):
        """Writes other records; returns their path."""
        folder = self.folder / "held_out"
        folder.mkdir()
        (path,) = make_files(folder, (16,), seed=7)
        return path

    def flags(self):
        return {
            "input_file": self.folder / "part-*.tfrecord",
            "max_seq_length": 16,
            "max_predictions_per_seq": 4,
            "train_batch_size": 8,
            "eval_batch_size": 16,
            "num_train_steps": 6,
            "num_warmup_steps": 2,
            "save_checkpoints_steps": 4,
            "save_summary_steps": 2,
            "learning_rate": 0.01,
            "do_train": True,
            "xla": "off",  # compiles sooner; where XLA matters a test asks for it
        }


class ElectraJob(PretrainingJob):
    """run_pretraining --objective=rtd on a configuration of one layer."""

    def __init__(self, folder, record_format=FORMAT, **sizes):
        super().__init__(folder, record_format, **sizes)
        self.config = folder / "electra.json"
        values = json.loads((folder / "bert.json").read_text())
        self.config.write_text(json.dumps({**values, "embedding_size": 16, "generator_size": 0.5}))

    def flags(self):
        electra = {"bert_config_file": None, "config_file": self.config, "objective": "rtd"}
        return {**super().flags(), **electra}


class ClassifierJob(Job):
    """run_classifier on tables in the folder data, which a test writes."""

    name, main = "run_classifier.py", staticmethod(classifier.main)

    def __init__(self, folder, **sizes):
        super().__init__(folder, **{**NO_DROPOUT, **sizes})
        self.data = folder / "data"
        (folder / "vocab.txt").write_text("\n".join(SENTENCE_PIECES) + "\n")

    def flags(self):
        return {
            "vocab_file": self.folder / "vocab.txt",
            "data_dir": self.data,
            "task_name": "tsv",
            "do_train": True,
            "max_seq_length": 16,
            "train_batch_size": 8,
            "train_step": 40,
            "learning_rate": 0.003,
            "bucket_boundaries": "none",  # one length compiles sooner
            "xla": "off",  # likewise
        }

    def with_sentences(self, train=64, dev=0, test=0):
        """Writes tables of so many sentences that are good or bad; returns the job."""
        ends = train, train + dev, train + dev + test
        splits = {"train": (0, ends[0]), "dev": ends[:2], "test": ends[1:]}
        splits = {name: part for name, part in splits.items() if part[0] < part[1]}
        write_splits(self.data, ["text", "label"], single_rows(ends[-1]), **splits)
        return self

    def again(self, **flags):
        """Runs it on the contents of the output directory, with the data alone given."""
        flags = {"output_dir": self.output, "data_dir": self.data, "xla": "off", **flags}
        return self.main([self.name, *(f"--{name}={value}" for name, value in flags.items())])


def _graphs_are_plain():
    return tf.config.optimizer.get_experimental_options().get("disable_meta_optimizer", False)


def wait_for_checkpoint():
    """Returns once no checkpoint is being written in this process."""
    for thread in threading.enumerate():
        if thread.name == BACKGROUND:
            thread.join()


def signal_at_step(number, step, setattr=setattr, written=True):
    """Makes training send its own process the signal `number` after `step` updates.

    `setattr` is `monkeypatch.setattr` in a process that lives on; `written`: whether it waits for
    a checkpoint that is being written.
    """
    steps = Reporter.steps

    def with_signal(self, last_step, metrics):
        steps(self, last_step, metrics)
        if last_step >= step:
            if written:
                wait_for_checkpoint()
            os.kill(os.getpid(), number)

    setattr(Reporter, "steps", with_signal)


def signal_at_index(number, step):
    """Likewise when a checkpoint has been written and its data file has its name already."""
    replace = os.replace

    def with_signal(source, target):
        if str(target).endswith(f"model.ckpt-{step}.index"):
            os.kill(os.getpid(), number)
        replace(source, target)

    os.replace = with_signal


def events_of(directory):
    """TensorBoard's view of a directory."""
    events = EventAccumulator(str(directory), size_guidance={"tensors": 0})
    events.Reload()
    return events


def curves(directory, kind="scalars"):
    """TensorBoard's points of a kind, or "histograms": name -> [(step, number or array)]."""
    events = events_of(directory)
    return {
        name: [(e.step, tf.make_ndarray(e.tensor_proto).tolist()) for e in events.Tensors(name)]
        for name in events.Tags()["tensors"]
        if events.SummaryMetadata(name).plugin_data.plugin_name == kind
    }


def texts(directory, name):
    """[(step, text)] of one of TensorBoard's texts."""
    return [
        (event.step, tf.make_ndarray(event.tensor_proto).item().decode())
        for event in events_of(directory).Tensors(name)
    ]


def results(directory):
    """The lines of eval_results.txt."""
    lines = (directory / "eval_results.txt").read_text().splitlines()
    return {name: float(value) for name, value in (line.split(" = ") for line in lines)}


def arrays(directory, step=None):
    """All that is in a checkpoint: weights, moments, counters; without a step, in an export."""
    name = "model.ckpt" if step is None else f"model.ckpt-{step}"
    reader = tf.train.load_checkpoint(str(directory / name))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def one_line(capsys):
    """The program's error message, the only line on standard error."""
    lines = spoken_lines(capsys.readouterr().err)
    assert len(lines) == 1 and lines[0].startswith("error: "), lines
    return lines[0]


def spoken_lines(text):
    """The lines of standard error that are not progress."""
    return [line for line in text.splitlines() if line.strip() and "%|" not in line]


def assert_same(one, two):
    """Two checkpoints are the same to the last bit, moments and counters included."""
    assert set(one) == set(two) and any(name.endswith("/adam_v") for name in one)
    for name, value in one.items():
        assert value.tobytes() == two[name].tobytes(), name


# What a run that is killed must survive: parts, loops, XLA, two devices.
HARD = {
    "accumulation": {"gradient_accumulation_steps": 4},
    "loop": {"steps_per_loop": 5, "recompute": "block"},
    "xla": {"xla": "auto"},
    "devices": {"distribution_strategy": "mirrored"},
}


def assert_curves_continue(directory, whole):
    """Every point is there once, with the values of the run that was never stopped."""
    for kind in ("scalars", "histograms"):
        found, expected = curves(directory, kind), curves(whole, kind)
        for name in expected:
            if not name.startswith(("throughput/", "memory/")):
                # Sorted: two files that were begun in one second have names in any order.
                assert sorted(found[name]) == expected[name], name


# After this update a run of `RUN` draws a point, and no checkpoint is due.
DRAWN = 15


def assert_kills_change_nothing(job, flags, steps):
    """A run of 20 updates that kill -9 ends after each of these ends as one that was not killed.

    SIGTERM ends it as well. Weights, moments, counters and all curves are compared.
    """
    whole = job.folder / "whole"
    assert job.run(**flags, output_dir=whole) == 0
    kills = [*((int(step), "SIGKILL") for step in steps), (DRAWN, "SIGTERM")]
    for step, number in sorted(kills):
        job.kill("any", step, number, **flags)
    assert job.run(**flags) == 0
    assert_same(arrays(job.output, 20), arrays(whole, 20))
    for folder in ("", "eval"):
        if (whole / folder).is_dir():
            assert_curves_continue(job.output / folder, whole / folder)


def features(input_file, output_file, *flags):
    """What extract_features writes of the last layer: a vector a line."""
    argv = [f"--input_file={input_file}", f"--output_file={output_file}", "--layers=-1", *flags]
    assert extract_features.main(["extract_features.py", *argv]) == 0
    with np.load(output_file) as file:
        return file["features"]


def command(text, **paths):
    """A README's command line with its paths replaced."""
    argv = shlex.split(text)
    given = {name: [i for i, a in enumerate(argv) if a.startswith(f"--{name}=")] for name in paths}
    for name, (index,) in given.items():
        argv[index] = f"--{name}={paths[name]}"
    return argv


if __name__ == "__main__":
    cpu = tf.config.list_physical_devices("CPU")[0]  # two devices, as in every_test.py
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    optimize_graphs(bool(os.environ.get("OPTIMIZE_GRAPHS", "1")))
    name, where, step, *flags = sys.argv[1:]
    send = {
        "step": signal_at_step,
        "any": functools.partial(signal_at_step, written=False),
        "index": signal_at_index,
    }[where]
    send(signal.Signals[name], int(step))
    program = os.environ.get("PROGRAM", "run_pretraining")
    sys.exit(getattr(programs, program)([f"{program}.py", *flags]))
