"""Measures training on packed and unpacked records, and the input pipeline without training.

    python -m benchmarks.speed.packed_records --text=text.txt --tokenizer_dir=vocab --work_dir=work
    python -m benchmarks.speed.packed_records [the same] --preset=base --batch=4 --length=512

The training step is the project's, on the project's input, with one device. All kinds of records
take turns, round after round, in one process; the median of the ratios within a round is reported.
Real tokens are those that are not padding; as batches differ, the mean over all records is used.
The pipeline alone reads and parses batches, and masks them if masks are dynamic.
"""

import time
from pathlib import Path

from benchmarks.common import DROPOUT, argument_parser, median_and_spread, print_table
from benchmarks.quality.records import create, real_tokens
from bert_tf.config import PRESETS, BertConfig
from tokenization import load_tokenizer

# Kind of records -> flags of create_pretraining_data, whether training is measured too.
KINDS = {
    "one sequence a row": ([], True),
    "packed": (["--packing"], True),
    "one sequence a row, dynamic masks": (["--masking=dynamic"], False),
    "packed, dynamic masks": (["--packing", "--masking=dynamic"], False),
}
HEADINGS = [
    "records", "padding", "s/step", "spread", "real tokens/s", "to one sequence a row", "spread",
    "rows/s", "rows/s of the pipeline alone", "spread",
]  # fmt: skip
PIPELINE_SECONDS = 1.0  # per round
WARM_UP = 2  # steps; the first compiles


class RecordKind:
    """A kind of records with its pipeline, and a training step if that is measured.

    Args:
        arguments: the command line's.
        config: a `BertConfig`.
        flags: of create_pretraining_data.
        trains: whether training is measured.
        number: of the kind, for the names of its files.
    """

    def __init__(self, arguments, config, flags, trains, number):
        from bert_tf.input.batch_plan import BatchPlan
        from bert_tf.input.record_checks import check_records

        path = arguments.work_dir / f"speed_{arguments.length}_{number}.tfrecord"
        self.description = create(
            arguments, arguments.text, path, arguments.length, ["--dupe_factor=1", *flags]
        )
        places = self.description["record_format"]["max_predictions_per_seq"]
        record_format, _ = check_records([str(path)], arguments.length, places, config)
        self.batch = arguments.batch
        self.plan = BatchPlan([str(path)], record_format, config, self.batch, seed=1)
        self.tokens = self.batch * real_tokens(self.description)
        self.seconds, self.pipeline = [], []
        self.batches = iter(self._dataset())
        self.step = make_step(config) if trains else None
        for _ in range(WARM_UP if trains else 0):
            self.step(next(self.batches))

    def _dataset(self):
        from bert_tf.input.pipeline import training_dataset

        return training_dataset(self.plan)

    def measure(self):
        """Measures a round: a step, then the pipeline for `PIPELINE_SECONDS`."""
        if self.step is not None:
            start = time.perf_counter()
            float(self.step(next(self.batches))["loss"])  # waits for the result
            self.seconds.append(time.perf_counter() - start)
        batches, count = iter(self._dataset()), 0
        next(batches)  # fills the shuffle buffer
        start = time.perf_counter()
        while time.perf_counter() - start < PIPELINE_SECONDS:
            next(batches)
            count += self.batch
        self.pipeline.append(count / (time.perf_counter() - start))


def make_step(config):
    """A training step as in run_pretraining, on one device."""
    import keras
    import tensorflow as tf

    from bert_tf import BertModel, PretrainingModel, WarmupPolynomialDecay
    from bert_tf.optimization import OPTIMIZERS
    from bert_tf.training.step import StepConfig, TrainingStep
    from bert_tf.training.xla import choose_compilation

    keras.utils.set_random_seed(1)
    model = PretrainingModel(BertModel(config))
    optimizer = OPTIMIZERS["adamw"](WarmupPolynomialDecay(1e-4, 10_000, 100))
    optimizer.build(model.trainable_variables)
    compiled, strategy = choose_compilation("auto", "float32"), tf.distribute.get_strategy()
    return TrainingStep(model, optimizer, strategy, StepConfig(), compiled)


def rows(kinds):
    """Yields a row of the table for each kind of records."""
    first = next(iter(kinds.values()))
    for name, kind in kinds.items():
        pipeline, pipeline_spread = median_and_spread(kind.pipeline)
        cells = ["", "", "", "", "", ""]
        if kind.step is not None:
            rates = [kind.tokens / seconds for seconds in kind.seconds]
            plain = [first.tokens / seconds for seconds in first.seconds]
            ratio, spread = median_and_spread([a / b for a, b in zip(rates, plain, strict=True)])
            seconds, seconds_spread = median_and_spread(kind.seconds)
            cells = [
                f"{seconds:.3g}",
                f"{seconds_spread:.0%}",
                f"{median_and_spread(rates)[0]:,.0f}",
                f"{ratio:.2f}",
                f"{spread:.0%}",
                f"{kind.batch / seconds:.3g}",
            ]
        padding = f"{kind.description['padding_share']:.1%}"
        yield [name, padding, *cells, f"{pipeline:,.0f}", f"{pipeline_spread:.0%}"]


def main():
    """Measures, and prints the table."""
    parser = argument_parser(__doc__)
    parser.add_argument("--text", required=True)
    parser.add_argument("--tokenizer_dir", required=True)
    parser.add_argument("--work_dir", required=True, type=Path)
    parser.add_argument("--preset", choices=PRESETS, default="small")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    arguments.work_dir.mkdir(parents=True, exist_ok=True)
    config = BertConfig.from_preset(
        arguments.preset,
        vocab_size=load_tokenizer(arguments.tokenizer_dir).vocab_size,
        hidden_dropout_prob=DROPOUT,
        attention_probs_dropout_prob=DROPOUT,
    )
    kinds = {
        name: RecordKind(arguments, config, flags, trains, number)
        for number, (name, (flags, trains)) in enumerate(KINDS.items())
    }
    for _ in range(arguments.rounds):
        for kind in kinds.values():
            kind.measure()
    print(
        f"{arguments.preset}, {arguments.batch} rows of {arguments.length}, float32, "
        f"{arguments.rounds} rounds of one step; spread: the quartiles' distance over the median.\n"
    )
    print_table(HEADINGS, rows(kinds))


if __name__ == "__main__":
    main()
