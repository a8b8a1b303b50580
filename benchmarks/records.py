"""Trains the same small BERT on the same text in other records: packed, masked while training.

    python benchmarks/records.py --text=text.txt --tokenizer_dir=vocab --work_dir=work
    python benchmarks/records.py [the same] --compare=masking

packing: rows of one sequence against rows of several. An update has as many real tokens in both.
masking: masks in the records, of five passes over the text, against one pass whose masks are drawn
while training; every tenth document alone, so that training goes over it many times.

Every fiftieth document is held out. The held-out records are the same for all: one sequence each,
their masks in them. Everything runs by the project's two programs, so that a run that was stopped
goes on where it was. Prints a Markdown table with the masked-LM loss on the held-out records, the
mean of the seeds with its standard error.
"""

import argparse
import dataclasses
import json
import math
import statistics
from pathlib import Path

from common import print_table, run, whole_numbers

from bert_common.progress import with_progress
from bert_tf.config import BertConfig
from bert_tf.training.evaluation import read_results
from create_pretraining_data.records.metadata import read_sidecar
from tokenization import load_tokenizer

HELD_OUT = 50  # every such document
PART = 10  # and of the rest every such one, for --compare=masking

SCALES = {"packing": (512, 13), "masking": (128, 32)}  # length, rows of one sequence in an update
# By comparison: a name, flags of create_pretraining_data.
WAYS = {
    "packing": {
        "one sequence a row": ["--dupe_factor=2"],
        "packed": ["--dupe_factor=2", "--packing"],
    },
    "masking": {
        "static, 5 passes": ["--dupe_factor=5"],
        "dynamic, 1 pass": ["--masking=dynamic"],
    },
}
HEADINGS = [
    "records", "MB", "rows", "padding", "rows of an update", "real tokens of an update",
    "held-out masked-LM loss", "standard error",
]  # fmt: skip


def split_text(text, work_dir):
    """Writes train.txt, part.txt, held_out.txt."""
    documents = [d for d in Path(text).read_text(encoding="utf-8").split("\n\n") if d.strip()]
    train = [d for n, d in enumerate(documents) if n % HELD_OUT]
    parts = {"train": train, "part": train[::PART], "held_out": documents[::HELD_OUT]}
    for name, chosen in parts.items():
        (work_dir / f"{name}.txt").write_text("\n\n".join(chosen) + "\n", encoding="utf-8")


def create(arguments, text, records, length, flags):
    """Makes records, unless they are there; returns what the JSON file beside them says."""
    run(
        "create_pretraining_data.py",
        f"--input_file={text}",
        f"--output_file={records}",
        f"--tokenizer_dir={arguments.tokenizer_dir}",
        f"--max_seq_length={length}",
        f"--max_predictions_per_seq={-(-length * 3 // 20 // 8) * 8}",  # 15 %, rounded up
        *flags,
    )
    return read_sidecar(str(records))


def real_tokens(description):
    """Tokens of a row on average, padding left out."""
    length = description["record_format"]["max_seq_length"]
    return length * (1 - description["padding_share"])


def train(arguments, records, held_out, batch, length, output, seed):
    """Trains, evaluates; the held-out masked-LM loss."""
    found = read_results(output)
    if "masked_lm_loss" not in found:
        run(
            "run_pretraining.py",
            f"--bert_config_file={arguments.work_dir}/config.json",
            f"--input_file={records}",
            f"--eval_input_file={held_out}",
            f"--output_dir={output}",
            "--do_train",
            "--do_eval",
            f"--train_batch_size={batch}",
            "--eval_batch_size=32",
            "--max_eval_steps=1000",
            f"--learning_rate={arguments.learning_rate}",
            f"--num_train_steps={arguments.steps}",
            f"--num_warmup_steps={arguments.steps // 10}",
            f"--random_seed={seed}",
            "--keep_checkpoint_max=1",
            f"--save_checkpoints_steps={max(1, arguments.steps // 4)}",
        )
        found = read_results(output)
    return found["masked_lm_loss"]


def mean_and_error(values):
    """The mean, and its standard error."""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return statistics.mean(values), error


def compare(arguments, comparison):
    """A row of the table for each way, then a line about the difference."""
    length, batch = SCALES[comparison]
    text = arguments.work_dir / ("part.txt" if comparison == "masking" else "train.txt")
    held_out = arguments.work_dir / f"held_out_{length}.tfrecord"
    create(arguments, arguments.work_dir / "held_out.txt", held_out, length, ["--dupe_factor=1"])
    made = {}
    for number, (name, flags) in enumerate(WAYS[comparison].items()):
        records = arguments.work_dir / f"{comparison}_{number}.tfrecord"
        made[name] = records, create(arguments, text, records, length, flags)
    plain = real_tokens(next(iter(made.values()))[1])
    losses = {name: [] for name in made}
    batches = {name: round(batch * plain / real_tokens(d)) for name, (_, d) in made.items()}
    jobs = [(seed, name) for seed in arguments.seeds for name in made]
    for seed, name in with_progress(jobs, comparison, "runs"):
        records, _ = made[name]
        output = arguments.work_dir / f"{records.stem}-{seed}"
        losses[name].append(
            train(arguments, records, held_out, batches[name], length, output, seed)
        )

    def rows():
        for name, (records, description) in made.items():
            mean, error = mean_and_error(losses[name])
            yield [
                name,
                f"{records.stat().st_size / 1e6:.1f}",
                f"{description['examples']:,}",
                f"{description['padding_share']:.1%}",
                str(batches[name]),
                f"{batches[name] * real_tokens(description):,.0f}",
                f"{mean:.4f}",
                f"{error:.4f}",
            ]

    print_table(HEADINGS, rows())
    (one, error), (other, other_error) = map(mean_and_error, losses.values())
    print(
        f"* {other - one:+.4f}, {abs(other - one) / math.hypot(error, other_error):.1f} standard "
        f"errors of the difference; {len(arguments.seeds)} seeds, {arguments.steps} updates."
    )


def main():
    """Does what is missing, prints a table for each comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--text", required=True)
    parser.add_argument("--tokenizer_dir", required=True)
    parser.add_argument("--work_dir", required=True, type=Path)
    parser.add_argument("--compare", choices=WAYS, nargs="*", default=list(WAYS))
    parser.add_argument("--seeds", type=whole_numbers, default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--learning_rate", type=float, default=1e-3)
    arguments = parser.parse_args()
    arguments.work_dir.mkdir(parents=True, exist_ok=True)
    if not (arguments.work_dir / "held_out.txt").exists():
        split_text(arguments.text, arguments.work_dir)
    size = load_tokenizer(arguments.tokenizer_dir).vocab_size
    config = BertConfig.from_preset("tiny", vocab_size=size)
    text = json.dumps(dataclasses.asdict(config))
    (arguments.work_dir / "config.json").write_text(text, encoding="utf-8")
    for comparison in arguments.compare:
        compare(arguments, comparison)


if __name__ == "__main__":
    main()
