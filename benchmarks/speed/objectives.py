"""Compares the training steps of masked words and of replaced tokens on the same ELECTRA.

    python -m benchmarks.speed.objectives                            4 x 256, 32 rows of 128
    python -m benchmarks.speed.objectives --config=electra_config.json --batch=16 --xla=off

Each step is forward with dropout, backward, clipping and an AdamW update on the same batch. The two
take turns, and the median of the ratios within a round is reported, as the speed of a shared
machine drifts.
"""

import dataclasses

from benchmarks.common import (
    cells,
    flag,
    launch,
    positive,
    print_table,
    ratios,
    with_dropout,
)
from benchmarks.speed import contenders
from bert_tf.costs.flops import training_flops
from bert_tf.memory_estimate import count_weights
from electra_tf import costs
from electra_tf.config import ElectraConfig
from model_formats.config_file import ConfigFile
from model_formats.encoders import ELECTRA
from model_formats.pretraining_objectives import MASKED_WORDS, REPLACED_TOKENS

HEADINGS = [
    "objective", "weights", "GFLOP/update", "s/step", "spread", "time / masked words'", "spread",
    "peak memory GiB",
]  # fmt: skip

# As reference_model/ has; a vocabulary as most Korean models have it.
LAYERS, VOCABULARY = 4, 32000

# Objective -> the functions that count weights, and the operations of a row.
COSTS = {
    MASKED_WORDS.name: (count_weights, training_flops),
    REPLACED_TOKENS.name: (costs.count_weights, costs.training_flops),
}


FLAGS = {
    "config": flag(None, "an electra_config.json; without it 4 layers of 256"),
    "batch": flag(32, type=positive(int)),
    "length": flag(128, type=positive(int)),
    "predictions": flag(20, type=positive(int)),
    "precision": flag("float32", choices=("float32", "bfloat16")),
    "xla": flag("auto", choices=("auto", "on", "off")),
    "steps": flag(2, "of each in a round", type=positive(int)),
}


def rows(task, config, rounds, steps):
    """Rows of the table; the task, see `contenders`, is without "objective"."""
    tasks = {name: {**task, "objective": name} for name in COSTS}
    times, memory = contenders.compare(tasks, rounds, steps)
    for name, (weights, flops) in COSTS.items():
        operations = task["batch"] * flops(config, task["length"], task["predictions"])
        yield [
            name, f"{weights(config):,}", f"{operations / 1e9:.0f}", *cells(times[name]),
            *cells(ratios(times[name], times[MASKED_WORDS.name]), ".2f"), f"{memory[name]:.2f}",
        ]  # fmt: skip


def main(given):
    """Measures, and prints the table."""
    config = ElectraConfig(vocab_size=VOCABULARY, num_hidden_layers=LAYERS)
    if given.config:
        config = ConfigFile(given.config, ELECTRA.name).config_with(VOCABULARY)
    config = with_dropout(config)
    names = ("batch", "length", "predictions", "precision", "xla")
    task = {"model": "electra", "config": dataclasses.asdict(config)}
    task |= {name: getattr(given, name) for name in names}
    print(
        f"{config.num_hidden_layers} layers of {config.hidden_size}, embeddings of "
        f"{config.embedding_size}, {config.vocab_size:,} tokens, a generator of "
        f"{config.generator.hidden_size}; {given.batch} x {given.length}, {given.predictions} "
        f"masked, {given.precision}, XLA {given.xla}; {given.rounds} x {given.steps} steps\n",
        flush=True,
    )
    print_table(HEADINGS, rows(task, config, given.rounds, given.steps))


if __name__ == "__main__":
    launch(main, __doc__, FLAGS, rounds=9)
