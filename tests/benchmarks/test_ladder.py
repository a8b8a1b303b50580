"""The ladder spends the same operations on every rung, with commands that the programs take."""

import argparse

import pytest

from benchmarks import common
from benchmarks.quality import ladder
from bert_common.errors import InputError
from bert_tf.costs.flops import training_flops
from bert_tf.memory_estimate import count_parts
from electra_tf import costs as costs_of_both
from run_scripts.flags.create_data import CreateDataFlags
from run_scripts.flags.parser import parse
from run_scripts.flags.pretrain import PretrainFlags
from tests.support.paths import ROOT

PIECES = 32_000
FLAGS = {"create_pretraining_data.py": CreateDataFlags, "run_pretraining.py": PretrainFlags}


@pytest.fixture
def arguments(tmp_path):
    return argparse.Namespace(
        text=ROOT / "sample_corpus" / "train.txt", tokenizer_dir=tmp_path, tasks_dir=tmp_path,
        work_dir=tmp_path, rungs=list(ladder.RUNGS), tasks=["nsmc"], seeds=[1, 2], petaflops=10.0,
        layers=12, hidden=256, batch=128, learning_rate=5e-4, optimizer="adamw",
        flags=[],
    )  # fmt: skip


def test_operations_are_equal(arguments):
    sizes = {}
    for name, rung in ladder.RUNGS.items():
        config = ladder.config_of(arguments, rung, PIECES)
        updates = ladder.updates_of(arguments, rung, config)
        row = training_flops(config, 128, 20, 1, rung.token_dropping)
        if rung.objective == "rtd":
            row = costs_of_both.training_flops(config, 128, 20)
        assert updates * 128 * row == pytest.approx(1e16, rel=0.002)
        sizes[name] = config.num_hidden_layers, config.hidden_size, count_parts(config)["blocks"]
    assert sizes["base"][:2] == (12, 256) and sizes["shallow"][:2] == (4, 256)
    assert sizes["wide"][:2] == (6, 384)
    assert sizes["wide"][2] == pytest.approx(sizes["base"][2], rel=0.15)


def end_at(output, step):
    """Leaves a training's folder as it is after `step` updates."""
    ladder.Path(output).mkdir(parents=True, exist_ok=True)
    ladder.Path(output, f"model.ckpt-{step}.index").touch()


@pytest.mark.parametrize("stopped", ("run_pretraining.py", "run_classifier.py"))
def test_a_program_that_a_signal_stopped(arguments, monkeypatch, stopped):
    """It ends without an error, but nothing is measured of what it left."""
    started = []

    def run(program, *_, **flags):
        started.append(program)
        if program == "run_pretraining.py":
            end_at(flags["output_dir"], flags["num_train_steps"] - (program == stopped))

    for module in (common, ladder):
        monkeypatch.setattr(module, "run", run)
    with pytest.raises(SystemExit, match="stopped .*; the same command goes on"):
        list(ladder.climb(arguments, PIECES))
    assert started[-1] == stopped


def test_commands(arguments, monkeypatch):
    """Each differs from the base in one thing; what is done is not done again."""
    commands = []

    def run(program, *given, **flags):
        flags = (*common.typed(flags), *given)
        commands.append((program, flags))
        if program in FLAGS:
            parsed = parse(FLAGS[program], [program, *flags])
            if program == "run_pretraining.py":
                end_at(parsed.output_dir, parsed.num_train_steps)
            return
        (output,) = (f.split("=")[1] for f in flags if f.startswith("--output_dir="))
        folder = ladder.Path(output)
        folder.mkdir(parents=True)
        (folder / "eval_results.txt").write_text(f"eval_accuracy = 0.{80 + len(commands)}\n")

    for module in (common, ladder):
        monkeypatch.setattr(module, "run", run)
    rows = list(ladder.climb(arguments, PIECES))
    assert [row[0] for row in rows] == list(ladder.RUNGS) and all("±" in row[-1] for row in rows)
    trained = [flags for program, flags in commands if program == "run_pretraining.py"]
    assert len(trained) == 2 * len(ladder.RUNGS)
    base, *others = trained[: len(ladder.RUNGS)]
    ignored = ("--output_dir", "--config_file", "--num_", "--save_")
    changes = [
        [f for f in flags if f not in base and not f.startswith(ignored)] for flags in others
    ]
    assert [len(change) for change in changes] == [1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 2], changes
    done = len(commands)
    assert list(ladder.climb(arguments, PIECES)) == rows and len(commands) == done


def test_a_task_without_data(arguments):
    """Before hours of training, after which alone it is read."""
    with pytest.raises(InputError, match="--tasks_dir must hold nsmc"):
        ladder.main(arguments)
