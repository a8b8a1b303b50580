"""Compares beginnings of positions by training a model further on longer rows.

    python -m benchmarks.quality.new_positions --model_dir=output/model \\
        --input_file=train_512.tfrecord --eval_input_file=heldout_512.tfrecord \\
        --work_dir=work/positions

The model has more positions than it was trained on, as pretraining.json in its folder says. random:
they stay the vectors that they were drawn as. repeat, interpolate: adapt_checkpoint makes them from
the trained ones. run_pretraining then trains each on the same records in the same order. Everything
is run by the project's own programs, so an interrupted run can be resumed by the same command.

Prints a Markdown table of the masked pieces of held-out rows that are found, with their loss,
before and after training.
"""

import os
import statistics
from pathlib import Path

from benchmarks.common import ENVIRONMENT, argument_parser, print_table, run, whole_numbers

os.environ.update(ENVIRONMENT)  # before TensorFlow is imported

from bert_tf.training.evaluation import read_results
from model_formats.model_folder import ModelFolder

RANDOM = "random"
ARMS = (RANDOM, "repeat", "interpolate")  # the others are values of --new_positions
SCORES = ("masked_lm_accuracy", "masked_lm_loss")


def adapt(arguments, arm):
    """The folder of the model with these positions, made unless it is there."""
    if arm == RANDOM:
        return arguments.model_dir
    folder = arguments.work_dir / arm
    if not (folder / "model.ckpt.index").exists():
        positions = ModelFolder.open(str(arguments.model_dir)).config.max_position_embeddings
        run(
            "adapt_checkpoint.py",
            f"--model_dir={arguments.model_dir}",
            f"--max_position_embeddings={positions}",
            f"--new_positions={arm}",
            f"--output_dir={folder}",
        )
    return folder


def held_out_scores(arguments, model, output, training=()):
    """The `SCORES` of a model, trained with these flags first; measured once."""
    results = read_results(output)
    if SCORES[0] not in results:
        flags = [
            f"--model_dir={model}",
            f"--input_file={arguments.input_file}",
            f"--eval_input_file={arguments.eval_input_file}",
            f"--output_dir={output}",
            f"--precision={arguments.precision}",
            "--encoder_dropout=0",
            "--do_eval",
            "--eval_batch_size=16",
            f"--max_eval_steps={arguments.eval_steps}",
        ]
        run("run_pretraining.py", *flags, *training)
        results = read_results(output)
    return tuple(results[name] for name in SCORES)


def measure(arguments, arm, seed):
    """The scores of one beginning with one seed: before training, and after it."""
    model = adapt(arguments, arm)
    before = held_out_scores(arguments, model, arguments.work_dir / f"{arm}-before")
    training = [
        "--do_train",
        f"--optimizer={arguments.optimizer}",
        f"--train_batch_size={arguments.batch_size}",
        f"--learning_rate={arguments.learning_rate}",
        f"--num_train_steps={arguments.steps}",
        f"--num_warmup_steps={arguments.steps // 10}",
        f"--random_seed={seed}",
    ]
    output = arguments.work_dir / f"{arm}-{seed}-after"
    return *before, *held_out_scores(arguments, model, output, training)


def table(scores):
    """The table's rows: for each beginning the means over the seeds, accuracies in percent.

    Args:
        scores: from (beginning, seed) to accuracy and loss before, accuracy and loss after.
    """
    for arm in dict.fromkeys(arm for arm, _ in scores):
        found = [numbers for (other, _), numbers in scores.items() if other == arm]
        means = [statistics.mean(column) for column in zip(*found, strict=True)]
        cells = [f"{100 * m:.1f}" if i % 2 == 0 else f"{m:.2f}" for i, m in enumerate(means)]
        yield [arm, str(len(found)), *cells]


def main():
    parser = argument_parser(__doc__)
    parser.add_argument(
        "--model_dir", required=True, type=Path, help="a pre-trained model's folder"
    )
    parser.add_argument("--input_file", required=True, help="records to train on")
    parser.add_argument("--eval_input_file", required=True, help="held-out records")
    parser.add_argument("--work_dir", required=True, type=Path)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch_size", type=int, default=8)
    parser.add_argument("--eval_steps", type=int, default=1000, help="batches of 16 rows")
    parser.add_argument("--optimizer", default="lamb", choices=("lamb", "adamw"))
    parser.add_argument("--learning_rate", type=float, default=3e-3)
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--seeds", type=whole_numbers, default=[1])
    arguments = parser.parse_args()
    arguments.work_dir.mkdir(parents=True, exist_ok=True)
    scores = {(arm, s): measure(arguments, arm, s) for arm in ARMS for s in arguments.seeds}
    heading = [f"{name} {when}" for when in ("before", "after") for name in ("found, %", "loss")]
    print_table(["positions", "seeds", *heading], list(table(scores)))


if __name__ == "__main__":
    main()
