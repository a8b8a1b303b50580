"""Compares two beginnings of a new vocabulary's rows by training a model further on a new domain.

    python -m benchmarks.quality.new_rows --model_dir=output/model \\
        --reviews=ratings_train.txt --work_dir=work/adaptation

build_vocab learns a vocabulary from reviews (NSMC's format: id, document, label, tab-separated),
adapt_checkpoint carries the model over to it, once with new rows that are the means of the old
tokenizer's pieces and once with random rows that are like typical ones, and run_pretraining trains
each on the reviews. Records, vocabulary and every setting are the same for both; a seed determines
the random rows, the order of examples and dropout. The last reviews are held out. Everything is run
by the project's own programs, so an interrupted run can be resumed by the same command.

Prints a Markdown table with the masked-LM loss on the held-out reviews before and after training.
"""

import json
import os
import statistics
from pathlib import Path

from benchmarks.common import ENVIRONMENT, argument_parser, print_table, run, whole_numbers

os.environ.update(ENVIRONMENT)  # before TensorFlow is imported

from bert_tf.training.evaluation import read_results

ARMS = ("mean", "random")  # values of --new_rows
HELD_OUT = 2_000  # reviews, about 40,000 pieces
LENGTH, PREDICTIONS, BATCH = 64, 10, 32
FIELD = 1  # the column with the review


def split_reviews(path, count, work_dir):
    """Writes train.txt and held_out.txt, each review a document; returns how many there are."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()[1:]
    reviews = [line.split("\t")[FIELD].strip() for line in lines]
    reviews = [review for review in reviews if review][: count + HELD_OUT]
    parts = {"train": reviews[:-HELD_OUT], "held_out": reviews[-HELD_OUT:]}
    for name, part in parts.items():
        (work_dir / f"{name}.txt").write_text("\n\n".join(part) + "\n", encoding="utf-8")
    return {name: len(part) for name, part in parts.items()}


def make_data(arguments):
    """Learns the vocabulary and makes the records, unless they are there."""
    work = arguments.work_dir
    if not (work / "vocabulary" / "vocab.txt").exists():
        run(
            "build_vocab.py",
            f"--input_file={work}/train.txt",
            f"--output_dir={work}/vocabulary",
            f"--vocab_size={arguments.vocab_size}",
            "--analyser=none",
        )
    for name, passes in (("train", 5), ("held_out", 1)):
        flags = [
            f"--input_file={work}/{name}.txt",
            f"--output_file={work}/{name}.tfrecord",
            f"--tokenizer_dir={work}/vocabulary",
            "--objective=none",
            "--packing",
            f"--max_seq_length={LENGTH}",
            f"--max_predictions_per_seq={PREDICTIONS}",
            f"--dupe_factor={passes}",
        ]
        run("create_pretraining_data.py", *flags)


def adapt(arguments, arm, seed):
    """The folder of the adapted model, made unless it is there."""
    folder = arguments.work_dir / f"{arm}-{seed}"
    if not (folder / "model.ckpt.index").exists():
        run(
            "adapt_checkpoint.py",
            f"--model_dir={arguments.model_dir}",
            f"--tokenizer_dir={arguments.work_dir}/vocabulary",
            f"--output_dir={folder}",
            f"--new_rows={arm}",
            f"--random_seed={seed}",
        )
    return folder


def held_out_loss(arguments, model, output, training=()):
    """The masked-LM loss of a model, trained with these flags first; measured once."""
    results = read_results(output)
    if "masked_lm_loss" not in results:
        flags = [
            f"--model_dir={model}",
            f"--input_file={arguments.work_dir}/train.tfrecord",
            f"--eval_input_file={arguments.work_dir}/held_out.tfrecord",
            f"--output_dir={output}",
            "--do_eval",
            "--eval_batch_size=32",
            "--max_eval_steps=1000",  # all
            "--xla=off",  # so short a run is over before compiling would pay
        ]
        run("run_pretraining.py", *flags, *training)
        results = read_results(output)
    return results["masked_lm_loss"]


def measure(arguments, arm, seed):
    """The losses of one beginning with one seed: before training, and after it."""
    model = adapt(arguments, arm, seed)
    before = held_out_loss(arguments, model, f"{model}-before")
    training = [
        "--do_train",
        "--optimizer=adamw",
        f"--train_batch_size={BATCH}",
        f"--learning_rate={arguments.learning_rate}",
        f"--num_train_steps={arguments.steps}",
        f"--num_warmup_steps={arguments.steps // 10}",
        f"--random_seed={seed}",
    ]
    after = held_out_loss(arguments, model, f"{model}-after", training)
    return before, after


def table(losses):
    """The table's rows: for each beginning the mean of the seeds, and each seed.

    Args:
        losses: from (new_rows, seed) to the losses before and after training.
    """
    for arm in dict.fromkeys(arm for arm, _ in losses):
        found = {seed: pair for (other, seed), pair in losses.items() if other == arm}
        for name, seeds in {"mean": list(found), **{str(seed): [seed] for seed in found}}.items():
            means = [statistics.mean(found[seed][i] for seed in seeds) for i in (0, 1)]
            yield [arm, name, *(f"{value:.3f}" for value in means)]


def main():
    parser = argument_parser(__doc__)
    parser.add_argument("--model_dir", required=True, help="a pre-trained model's folder")
    parser.add_argument("--reviews", required=True, help="ratings_train.txt of NSMC")
    parser.add_argument("--work_dir", required=True, type=Path)
    parser.add_argument("--num_reviews", type=int, default=20_000, help="to learn from")
    parser.add_argument("--vocab_size", type=int, default=8000)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--learning_rate", type=float, default=5e-4)
    parser.add_argument("--seeds", type=whole_numbers, default=[1, 2, 3])
    arguments = parser.parse_args()
    arguments.work_dir.mkdir(parents=True, exist_ok=True)
    counts = split_reviews(arguments.reviews, arguments.num_reviews, arguments.work_dir)
    make_data(arguments)
    losses = {(arm, s): measure(arguments, arm, s) for s in arguments.seeds for arm in ARMS}
    report = json.loads(
        (arguments.work_dir / f"mean-{arguments.seeds[0]}/adaptation.json").read_text()
    )
    rows = {name: report["vocabulary"][name]["count"] for name in ("kept", "averaged", "random")}
    print(f"{counts['train']:,} reviews, {counts['held_out']:,} held out; rows: {rows}\n")
    losses = dict(sorted(losses.items(), key=lambda item: ARMS.index(item[0][0])))
    heading = f"after {arguments.steps} steps"
    print_table(["new rows", "seed", "masked-LM loss before", heading], list(table(losses)))


if __name__ == "__main__":
    main()
