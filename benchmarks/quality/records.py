"""Compares kinds of records by training the same small BERT on them: packed, dynamic masks.

    python -m benchmarks.quality.records --text=text.txt --tokenizer_dir=vocab --work_dir=work
    python -m benchmarks.quality.records [the same] --compare=masking

packing: rows of one sequence against rows of several. An update has equally many real tokens in
both. masking: records with static masks from five passes over the text, against records of one pass
whose masks are drawn in training; only every tenth document is used, so that training repeats it
many times.

Every fiftieth document is held out. The held-out records are the same for all: one sequence a row,
static masks. Everything is run by the project's two programs, so an interrupted run can be resumed
by the same command. Prints a Markdown table with the masked-LM loss on the held-out records: the
mean over the seeds, with its standard error.
"""

import dataclasses
import json
import math
import statistics
from pathlib import Path

from benchmarks.common import argument_parser, print_table, run, whole_numbers
from bert_common.progress import with_progress
from bert_tf.config import BertConfig
from bert_tf.training.evaluation import read_results
from create_pretraining_data.records.metadata import read_sidecar
from tokenization import load_tokenizer

HELD_OUT = 50  # every 50th document is held out
PART = 10  # every 10th of the rest is used for --compare=masking

SCALES = {"packing": (512, 13), "masking": (128, 32)}  # length, rows of one sequence in an update
# Comparison -> kind of records -> flags of create_pretraining_data.
KINDS = {
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
    """Makes records unless they exist; returns the description in the JSON file beside them."""
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
    """The mean number of tokens in a row, without padding."""
    length = description["record_format"]["max_seq_length"]
    return length * (1 - description["padding_share"])


def train(arguments, records, held_out, batch, output, seed):
    """Trains and evaluates unless that is done; returns the held-out masked-LM loss."""
    results = read_results(output)
    if "masked_lm_loss" not in results:
        flags = [
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
        ]
        run("run_pretraining.py", *flags)
        results = read_results(output)
    return results["masked_lm_loss"]


def mean_and_error(values):
    """The mean of some values, and its standard error."""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return statistics.mean(values), error


def compare(arguments, comparison):
    """Prints a table with a row for each kind of records, and a line about the difference."""
    length, batch = SCALES[comparison]
    text = arguments.work_dir / ("part.txt" if comparison == "masking" else "train.txt")
    held_out = arguments.work_dir / f"held_out_{length}.tfrecord"
    create(arguments, arguments.work_dir / "held_out.txt", held_out, length, ["--dupe_factor=1"])
    descriptions = {}
    for number, (name, flags) in enumerate(KINDS[comparison].items()):
        records = arguments.work_dir / f"{comparison}_{number}.tfrecord"
        descriptions[name] = records, create(arguments, text, records, length, flags)
    plain = real_tokens(next(iter(descriptions.values()))[1])
    losses = {name: [] for name in descriptions}
    batches = {
        name: round(batch * plain / real_tokens(description))
        for name, (_, description) in descriptions.items()
    }
    jobs = [(seed, name) for seed in arguments.seeds for name in descriptions]
    for seed, name in with_progress(jobs, comparison, "runs"):
        records, _ = descriptions[name]
        output = arguments.work_dir / f"{records.stem}-{seed}"
        losses[name].append(train(arguments, records, held_out, batches[name], output, seed))

    def rows():
        for name, (records, description) in descriptions.items():
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
    """Trains what is missing, and prints a table for each comparison."""
    parser = argument_parser(__doc__)
    parser.add_argument("--text", required=True)
    parser.add_argument("--tokenizer_dir", required=True)
    parser.add_argument("--work_dir", required=True, type=Path)
    parser.add_argument("--compare", choices=KINDS, nargs="*", default=list(KINDS))
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
