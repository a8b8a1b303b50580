"""Fine-tuning on several devices gives the results, weights and predictions of one."""

import numpy as np
import pytest

from bert_tf.training.evaluation import read_results
from run_scripts.classifier import main
from tests.support.paths import ROOT
from tests.support.programs import NO_DROPOUT, arrays, spoken_lines
from tests.support.task_data import write_table
from tests.support.tiny_models import write_config
from tests.support.vocabularies import write_pieces
from tests.support.workers import start_workers, wait_for

STEPS = 6

# run_classifier in which the first worker, which writes, is slow at it, and every evaluation is its
# best so far. By the figures of the others none is, as if they rounded differently. They say which
# weights they take.
SLOW_FIRST = """
import itertools, json, os, sys, time
from bert_tf.training import state
from finetuning.prediction import TaskEvaluator
from run_scripts.classifier import main
from run_scripts.downstream import training

write, read = state.save_google_checkpoint, training.open_weights

def slow_write(model, path):
    time.sleep(3)
    write(model, path)

def told_read(path):
    print("takes", os.path.basename(path), flush=True)
    return read(path)

first = json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 0
numbers = itertools.count(step=1 if first else -1)
TaskEvaluator.score = lambda self, results: float(next(numbers))
if first:
    state.save_google_checkpoint = slow_write
else:
    training.open_weights = told_read
sys.exit(main(sys.argv))
"""


@pytest.fixture
def flags(tmp_path):
    """The command line of a toy task but for --output_dir and devices; no dropout."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(40):
        words = rng.choice(["film", "very", "so"], rng.integers(1, 12))
        rows.append((" ".join([*words, ("bad", "good")[i % 2]]), i % 2))
    for split in ("train", "dev"):
        write_table(tmp_path / f"{split}.tsv", ["text", "label"], rows)
    write_pieces(tmp_path, ["good", "bad", "film", "very", "so"])
    write_config(tmp_path / "bert.json", **NO_DROPOUT)
    return [
        "--task_name=tsv", f"--data_dir={tmp_path}", f"--bert_config_file={tmp_path}/bert.json",
        f"--vocab_file={tmp_path}/vocab.txt", "--do_train", "--do_eval", "--do_predict",
        "--train_batch_size=8", f"--train_step={STEPS}", "--eval_every_steps=3", "--xla=off",
        "--learning_rate=0.003", "--max_seq_length=16", "--bucket_boundaries=8,12",
        "--classifier_dropout=0",
    ]  # fmt: skip


def assert_same_training(one, other):
    """The best weights, which step they are of, the figures, the predictions."""
    results, expected = read_results(str(one)), read_results(str(other))
    assert results == pytest.approx(expected, rel=1e-5) and expected["global_step"] > 0
    step = int(expected["global_step"])
    found, wanted = arrays(one / "best", step), arrays(other / "best", step)
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    rows = [(folder / "predictions_dev.tsv").read_text().split() for folder in (one, other)]
    assert len(rows[0]) == len(rows[1]) > 40


@pytest.mark.slow
def test_two_devices_are_as_one(tmp_path, flags):
    for name, strategy in (("one", "one_device"), ("two", "mirrored")):
        argv = [*flags, f"--output_dir={tmp_path / name}", f"--distribution_strategy={strategy}"]
        assert main(["run_classifier.py", *argv]) == 0
    assert_same_training(tmp_path / "two", tmp_path / "one")


@pytest.mark.slow
@pytest.mark.usefixtures("optimized_graphs")  # as the workers have them
def test_two_workers_are_as_one_device(tmp_path, flags):
    assert main(["run_classifier.py", *flags, f"--output_dir={tmp_path / 'one'}"]) == 0
    argv = [*flags, f"--output_dir={tmp_path / 'two'}", "--distribution_strategy=multi_worker"]
    with start_workers([ROOT / "run_classifier.py", *argv], tmp_path / "logs") as workers:
        wait_for(workers)
        outputs = [(worker.stdout, spoken_lines(worker.stderr)) for worker in workers]
    (chief_out, _), (out, err) = outputs
    assert "Eval results" in chief_out and err == []
    assert out.endswith("waiting for all of 2 workers\n")
    assert_same_training(tmp_path / "two", tmp_path / "one")


@pytest.mark.slow
def test_workers_agree_with_the_first_on_the_best_weights(tmp_path, flags):
    """They end after the same step, and none reads them before they are written."""
    program = tmp_path / "slow_first.py"
    program.write_text(SLOW_FIRST)
    argv = [flag.replace("eval_every_steps=3", "eval_every_steps=2") for flag in flags]
    argv += [f"--output_dir={tmp_path / 'two'}", "--distribution_strategy=multi_worker"]
    argv.append("--patience=1")
    with start_workers([program, *argv], tmp_path / "logs") as workers:
        wait_for(workers)
        assert f"takes model.ckpt-{STEPS}\n" in workers[1].stdout
