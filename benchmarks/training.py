"""Measures the training step: steps/s, examples/s, share of a matrix product's speed, memory.

    python benchmarks/training.py                        BERT-base 8 x 128, the quickstart's ALBERT
    python benchmarks/training.py --config=FILE --batch=32 --length=128

Prints a Markdown table; "spread" is the distance of the quartiles over the median. Run it on a
quiet machine: every row names the speed of a plain matrix product measured just before it.
"""

import argparse
import resource
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from albert_tf.config import AlbertConfig
from bert_tf.config import BertConfig
from run_scripts.quiet import import_tensorflow

MATRIX = 2048  # large enough that the product runs at the machine's own speed
QUICKSTART = Path(__file__).parents[1] / "run_scripts/flagfiles/quickstart_albert.json"


def random_batch(batch, length, predictions, vocab_size):
    """Full rows of random ids."""
    import numpy as np
    import tensorflow as tf

    rng = np.random.default_rng(0)

    def integers(high, shape):
        return tf.constant(rng.integers(0, high, shape), tf.int32)

    return {
        "input_ids": integers(vocab_size, (batch, length)),
        "input_mask": tf.ones((batch, length), tf.int32),
        "segment_ids": integers(2, (batch, length)),
        "masked_lm_positions": integers(length, (batch, predictions)),
        "masked_lm_ids": integers(vocab_size, (batch, predictions)),
        "masked_lm_weights": tf.ones((batch, predictions)),
        "next_sentence_labels": integers(2, (batch, 1)),
        "next_sentence_weights": tf.ones((batch,)),
    }


def seconds_per_call(call, repeats):
    """Median and relative spread of a call's time."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    low, median, high = statistics.quantiles(times, n=4)
    return median, (high - low) / median


def matrix_product_flops():
    """Floating-point operations a second of a bare product, float32."""
    import tensorflow as tf

    a = tf.random.normal((MATRIX, MATRIX))
    product = tf.function(lambda: tf.reduce_sum(a @ a))
    product()
    median, _ = seconds_per_call(lambda: product().numpy(), 9)
    return 2 * MATRIX**3 / median


def step_flops(config, batch, length, predictions):
    """Operations of the matrix products of one update; the backward pass is twice the forward."""
    layers = config.num_hidden_layers * getattr(config, "inner_group_num", 1)
    h, tokens = config.hidden_size, batch * length
    block = 2 * tokens * (4 * h * h + 2 * h * config.intermediate_size) + 4 * tokens * length * h
    masked = 2 * batch * predictions * (h + config.vocab_size) * config.embedding_size
    return 3 * (layers * block + masked)


def measure(name, config, batch, length, predictions, xla, repeats):
    """One row of the table."""
    import tensorflow as tf

    from albert_tf import AlbertModel
    from bert_tf import BertModel, PretrainingModel, WarmupPolynomialDecay
    from bert_tf.optimization import OPTIMIZERS
    from bert_tf.step import TrainingStep

    is_albert = isinstance(config, AlbertConfig)
    model = PretrainingModel((AlbertModel if is_albert else BertModel)(config))
    optimizer = OPTIMIZERS["lamb" if is_albert else "adamw"](WarmupPolynomialDecay(1e-4, 1000, 10))
    optimizer.build(model.trainable_variables)
    step = TrainingStep(model, optimizer, tf.distribute.get_strategy(), xla=xla)
    data = random_batch(batch, length, predictions, config.vocab_size)
    for _ in range(2):  # compiles, then warms up
        float(step(data)["loss"])
    peak = matrix_product_flops()
    median, spread = seconds_per_call(lambda: float(step(data)["loss"]), repeats)
    share = step_flops(config, batch, length, predictions) / median / peak
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [
        name,
        f"{batch} x {length}",
        "on" if xla else "off",
        f"{1 / median:.3f}",
        f"{batch / median:.2f}",
        f"{spread:.0%}",
        f"{peak / 1e9:.0f}",
        f"{share:.0%}",
        f"{memory:.2f}",
    ]


HEADINGS = [
    "model", "batch", "XLA", "steps/s", "examples/s", "spread", "matrix product GFLOP/s",
    "share of it", "peak process memory GiB",
]  # fmt: skip


def main():
    """Measures, prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", help="a bert_config.json or an albert_config.json")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--predictions", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--xla", choices=("on", "off"), default="on")
    arguments = parser.parse_args()
    import_tensorflow()
    shape = (arguments.batch, arguments.length, arguments.predictions)
    if arguments.config:
        kind = (
            AlbertConfig if "embedding_size" in Path(arguments.config).read_text() else BertConfig
        )
        jobs = [(arguments.config, kind.from_json_file(arguments.config), *shape)]
    else:
        # Smallest first: the peak of memory is the process's.
        jobs = [
            ("the quickstart's ALBERT", AlbertConfig.from_json_file(QUICKSTART), 64, 64, 10),
            ("BERT-base", BertConfig.from_preset("base", vocab_size=30522), *shape),
        ]
    print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
    for job in jobs:
        row = measure(*job, xla=arguments.xla == "on", repeats=arguments.repeats)
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
