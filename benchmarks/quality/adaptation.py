"""Compares beginnings of what an adapted model lacks by training each further on the same records.

    python -m benchmarks.quality.adaptation --model_dir=output/model --tokenizer_dir=vocab
      --arms=mean,random --input_file=train.tfrecord --eval_input_file=heldout.tfrecord
      --work_dir=work/rows --steps=300 --optimizer=adamw --batch_size=32 --learning_rate=5e-4
    python -m benchmarks.quality.adaptation --model_dir=output/model --arms=as_is,repeat,interpolate
      --input_file=train_512.tfrecord --eval_input_file=heldout_512.tfrecord --work_dir=work

mean, random: rows of a new vocabulary, means of the old tokenizer's pieces or random ones that are
like typical ones; build_vocab and create_pretraining_data made the vocabulary and its records
(docs/adaptation.md: 8,000 pieces of 20,000 reviews, packed rows of 64).
repeat, interpolate: positions beyond those that the model was trained on, as pretraining.json in
its folder says, made from the trained ones; as_is: they stay as they were drawn. adapt_checkpoint
makes each model, run_pretraining trains it. An interrupted run is resumed by the same command.

Prints a Markdown table of the masked pieces of held-out rows that are found, with their loss,
before and after training: the means over the seeds, and each seed.
"""

import statistics
from pathlib import Path

from benchmarks.common import flag, launch, print_table, results_of, run, some_of
from model_formats.model_folder import ModelFolder

ARMS = {
    "mean": {"new_rows": "mean"},
    "random": {"new_rows": "random"},
    "repeat": {"new_positions": "repeat"},
    "interpolate": {"new_positions": "interpolate"},
    "as_is": None,
}
FLAGS = {
    "model_dir": flag(str, "a pre-trained model's folder"),
    "arms": some_of(("as_is", "repeat", "interpolate"), ARMS),
    "tokenizer_dir": flag(None, "the new vocabulary, for mean and random"),
    "input_file": flag(str, "records to train on"),
    "eval_input_file": flag(str, "held-out records"),
    "work_dir": Path,
    "steps": 400,
    "batch_size": 8,
    "eval_steps": flag(1000, "batches of 16 rows"),
    "optimizer": flag("lamb", choices=("lamb", "adamw")),
    "learning_rate": 3e-3,
    "precision": "float32",
    "seeds": [1],
}
HEADINGS = ["beginning", "seed", "found before, %", "loss before", "found after, %", "loss after"]


def adapt(arguments, arm, seed):
    """The folder of the model with this beginning, made unless it is there."""
    if ARMS[arm] is None:
        return arguments.model_dir
    folder = arguments.work_dir / f"{arm}-{seed}"
    if not (folder / "model.ckpt.index").exists():
        config = ModelFolder.open(arguments.model_dir).config
        size = config.max_position_embeddings if "new_positions" in ARMS[arm] else None
        run(
            "adapt_checkpoint.py", model_dir=arguments.model_dir, output_dir=folder,
            tokenizer_dir=arguments.tokenizer_dir, max_position_embeddings=size, random_seed=seed,
            **ARMS[arm],
        )  # fmt: skip
    return folder


def scores(arguments, model, output, **training):
    """Accuracy and loss of a model, trained with these flags first; measured once."""
    results = results_of(
        "run_pretraining.py", output, model_dir=model, do_eval=True, encoder_dropout=0,
        input_file=arguments.input_file, eval_input_file=arguments.eval_input_file,
        precision=arguments.precision, eval_batch_size=16, max_eval_steps=arguments.eval_steps,
        **training,
    )  # fmt: skip
    return 100 * results["masked_lm_accuracy"], results["masked_lm_loss"]


def measure(arguments, arm, seed):
    """The scores of one beginning with one seed: before training, and after it."""
    model, output = adapt(arguments, arm, seed), arguments.work_dir / f"{arm}-{seed}"
    before = scores(arguments, model, f"{output}-before")
    after = scores(
        arguments, model, f"{output}-after", do_train=True, random_seed=seed,
        optimizer=arguments.optimizer, train_batch_size=arguments.batch_size,
        learning_rate=arguments.learning_rate, num_train_steps=arguments.steps,
        num_warmup_steps=arguments.steps // 10,
    )  # fmt: skip
    return *before, *after


def rows(arguments):
    """Yields the rows of the table."""
    for arm in arguments.arms:
        found = {str(seed): measure(arguments, arm, seed) for seed in arguments.seeds}
        mean = [statistics.mean(column) for column in zip(*found.values(), strict=True)]
        for name, numbers in {"mean": mean, **found}.items():
            forms = (".1f", ".3f", ".1f", ".3f")
            yield [arm, name, *(f"{n:{form}}" for n, form in zip(numbers, forms, strict=True))]


def main(arguments):
    """Trains what is missing, and prints the table."""
    arguments.work_dir.mkdir(parents=True, exist_ok=True)
    print_table(HEADINGS, rows(arguments))


if __name__ == "__main__":
    launch(main, __doc__, FLAGS)
