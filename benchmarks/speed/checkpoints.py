"""Measures how long training waits for a checkpoint.

    python -m benchmarks.speed.checkpoints --work_dir=work                   BERT-base with AdamW
    python -m benchmarks.speed.checkpoints --work_dir=work --rounds=3 --config=FILE

Weights and moments have random values. In each round the training loop's two halves are timed:
the copy of the state, for which it waits, and the rest, which a thread does meanwhile (writing,
reading back, renaming). Waiting for both is what a loop without a thread would do.
"""

import tempfile
import time

import numpy as np

from benchmarks.common import (
    add_model_flags,
    argument_parser,
    median_and_spread,
    print_table,
    read_config,
)

HEADINGS = ["what the loop waits for", "seconds", "spread", "share of both", "spread"]


def make_state(model_type, config):
    """A `TrainingState` whose arrays are not zero, so that every page of memory exists."""
    from albert_tf import AlbertModel
    from bert_tf import BertModel, PretrainingModel
    from bert_tf.optimization import OPTIMIZERS
    from bert_tf.training.state import TrainingState

    encoder = {"bert": BertModel, "albert": AlbertModel}[model_type](config)
    model = PretrainingModel(encoder)
    optimizer = OPTIMIZERS["adamw"](1e-4)
    optimizer.build(model.trainable_variables)
    rng = np.random.default_rng(0)
    for weight in model.trainable_variables:
        for variable in (weight, *optimizer.slot_variables(weight)):
            variable.assign(rng.random(variable.shape, np.float32))
    return TrainingState(model, optimizer)


def main():
    """Measures and prints the table."""
    parser = argument_parser(__doc__)
    add_model_flags(parser)
    parser.add_argument("--work_dir", required=True, help="a folder on the disk to measure")
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    from bert_tf.training.loop import TrainingConfig
    from bert_tf.training.state import start_saving

    state = make_state(arguments.model, read_config(arguments.model, arguments.config))
    copies, writes = [], []
    with tempfile.TemporaryDirectory(dir=arguments.work_dir) as folder:
        config = TrainingConfig(
            output_dir=folder, train_batch_size=1, num_train_steps=100, keep_checkpoint_max=1
        )
        for _ in range(arguments.rounds + 1):  # the first warms up
            state.step += 1
            start = time.perf_counter()
            write = start_saving(state, config)
            middle = time.perf_counter()
            write()
            copies.append(middle - start)
            writes.append(time.perf_counter() - middle)
    copies, both = copies[1:], [a + b for a, b in zip(copies[1:], writes[1:], strict=True)]

    def row(name, seconds):
        shares = [a / b for a, b in zip(seconds, both, strict=True)]
        pairs = median_and_spread(seconds), median_and_spread(shares)
        return [name, *(text for m, s in pairs for text in (f"{m:.3g}", f"{s:.0%}"))]

    print_table(HEADINGS, [row("copy", copies), row("copy and writing", both)])


if __name__ == "__main__":
    main()
