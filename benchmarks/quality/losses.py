"""Compares the losses of trainings in lower precision with float32's.

    python -m benchmarks.quality.losses --records=train.tfrecord --config=FILE \\
        --steps=300 --seeds=1,2,3

Each way trains the same new weights on the same batches, on two logical devices: in float32; with
gradients added up over the devices in bfloat16; with products in bfloat16. What a way changes
should be less than what another seed (of weights, order and dropout) does.
"""

import statistics

from benchmarks.common import (
    add_model_flags,
    argument_parser,
    print_table,
    read_config,
    whole_numbers,
)

# Name -> precision, and the type that gradients are added up in.
WAYS = {
    "float32": ("float32", "float32"),
    "--all_reduce_precision=bfloat16": ("float32", "bfloat16"),
    "--precision=bfloat16": ("bfloat16", "float32"),
}
LAST = 50  # The mean of so many losses at the end is compared.


def train(arguments, config, seed, precision, reduced):
    """The mean of the last losses."""
    import keras
    import numpy as np
    import tensorflow as tf

    from albert_tf import AlbertModel
    from bert_tf import BertModel, PretrainingModel, WarmupPolynomialDecay
    from bert_tf.input.record_checks import check_records
    from bert_tf.input.training_records import TrainingRecords
    from bert_tf.optimization import OPTIMIZERS
    from bert_tf.training.distribution import make_strategy
    from bert_tf.training.loop import TrainingConfig
    from bert_tf.training.mixed_precision import POLICIES
    from bert_tf.training.state import TrainingState
    from bert_tf.training.step import TrainingStep
    from bert_tf.training.xla import choose_compilation

    strategy = make_strategy("mirrored")
    keras.utils.set_random_seed(seed)
    shape = arguments.length, arguments.predictions
    record_format, examples = check_records([arguments.records], *shape, config)
    with strategy.scope():
        encoder = {"bert": BertModel, "albert": AlbertModel}[arguments.model](
            config, dtype=POLICIES[precision]
        )
        model = PretrainingModel(encoder)
        steps = arguments.steps
        optimizer = OPTIMIZERS["adamw"](WarmupPolynomialDecay(arguments.rate, steps, steps // 10))
        optimizer.build(model.trainable_variables)
    training = TrainingConfig(
        output_dir="",
        train_batch_size=arguments.batch,
        num_train_steps=steps,
        all_reduce_precision=reduced,
        seed=seed,
    )
    compilation = choose_compilation("auto", precision)
    step = TrainingStep(model, optimizer, strategy, training, compilation)
    records = TrainingRecords([arguments.records], record_format, examples, config)
    data = records.in_order(TrainingState(model, optimizer), training)
    batches = iter(data.batches(strategy, training, 0))
    losses = [float(step(next(batches))["loss"]) for _ in range(steps)]
    tf.keras.backend.clear_session()
    return float(np.mean(losses[-LAST:]))


def main():
    """Trains every way with every seed and prints the table."""
    parser = argument_parser(__doc__)
    add_model_flags(parser)
    parser.add_argument("--records", required=True)
    parser.add_argument("--length", type=int, default=64, help="tokens of a record")
    parser.add_argument("--predictions", type=int, default=10, help="masked places of a record")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--seeds", type=whole_numbers, default=[1, 2, 3])
    arguments = parser.parse_args()
    import tensorflow as tf

    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    config = read_config(arguments.model, arguments.config)
    losses = {}

    def rows():
        for name, way in WAYS.items():
            losses[name] = [train(arguments, config, seed, *way) for seed in arguments.seeds]
            pairs = zip(losses[name], losses["float32"], strict=True)
            changes = [a - b for a, b in pairs]
            yield [
                name,
                ", ".join(f"{loss:.3f}" for loss in losses[name]),
                f"{statistics.mean(losses[name]):.3f}",
                ", ".join(f"{change:+.3f}" for change in changes),
            ]

    seeds = ", ".join(map(str, arguments.seeds))
    print_table(["way", f"loss, seeds {seeds}", "mean", "beside float32, the same seed"], rows())


if __name__ == "__main__":
    main()
