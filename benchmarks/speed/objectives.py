"""Compares the training steps of masked words and of replaced tokens on the same ELECTRA.

    python -m benchmarks.speed.objectives                            4 x 256, 32 rows of 128
    python -m benchmarks.speed.objectives --config=electra_config.json --batch=16 --xla=off

Each step is forward with dropout, backward, clipping and an AdamW update on the same batch. The two
take turns, and the median of the ratios within a round is reported, as the speed of a shared
machine drifts.
"""

import dataclasses

from benchmarks.common import (
    DROPOUT,
    argument_parser,
    median_and_spread,
    positive,
    print_table,
    take_turns,
)
from benchmarks.speed.contender import Contender
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


def compare(task, config, rounds, steps):
    """Rows of the table.

    Args:
        task: see `benchmarks.speed.contenders`, without "objective".
        config: its `ElectraConfig`.
        rounds, steps: as for `take_turns`.
    """
    contenders = [Contender("project", {**task, "objective": name}) for name in COSTS]
    times = take_turns(contenders, rounds, steps)
    for contender in contenders:
        contender.close()
    for (name, functions), contender, seconds in zip(COSTS.items(), contenders, times, strict=True):
        weights, flops = functions
        median, spread = median_and_spread(seconds)
        ratio, ratio_spread = median_and_spread(
            [mine / first for mine, first in zip(seconds, times[0], strict=True)]
        )
        operations = task["batch"] * flops(config, task["length"], task["predictions"])
        yield [
            name, f"{weights(config):,}", f"{operations / 1e9:.0f}", f"{median:.3g}",
            f"{spread:.0%}", f"{ratio:.2f}", f"{ratio_spread:.0%}", f"{contender.memory:.2f}",
        ]  # fmt: skip


def main():
    """Measures, and prints the table."""
    parser = argument_parser(__doc__)
    parser.add_argument("--config", help="an electra_config.json; without it 4 layers of 256")
    parser.add_argument("--batch", type=positive(int), default=32)
    parser.add_argument("--length", type=positive(int), default=128)
    parser.add_argument("--predictions", type=positive(int), default=20)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--xla", choices=("auto", "on", "off"), default="auto")
    parser.add_argument("--rounds", type=positive(int), default=9)
    parser.add_argument("--steps", type=positive(int), default=2, help="of each in a round")
    given = parser.parse_args()
    config = ElectraConfig(vocab_size=VOCABULARY, num_hidden_layers=LAYERS)
    if given.config:
        config = ConfigFile(given.config, ELECTRA.name).config_with(VOCABULARY)
    config = dataclasses.replace(
        config, hidden_dropout_prob=DROPOUT, attention_probs_dropout_prob=DROPOUT
    )
    names = ("batch", "length", "predictions", "precision", "xla")
    task = {"model": "electra", "config": dataclasses.asdict(config)}
    task |= {name: getattr(given, name) for name in names}
    print(
        f"{config.num_hidden_layers} layers of {config.hidden_size}, embeddings of "
        f"{config.embedding_size}, {config.vocab_size:,} pieces, a generator of "
        f"{config.generator.hidden_size}; {given.batch} x {given.length}, {given.predictions} "
        f"masked, {given.precision}, XLA {given.xla}; {given.rounds} x {given.steps} steps\n",
        flush=True,
    )
    print_table(HEADINGS, compare(task, config, given.rounds, given.steps))


if __name__ == "__main__":
    main()
