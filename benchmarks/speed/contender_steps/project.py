"""Defines this project's training step for measurement, beside one bare matrix product."""

from benchmarks.speed.contender_steps.shared import DECAY, RATE, policy, task_config, timed


def project_model(task, config):
    """Builds this project's model and optimizer."""
    from bert_tf import WarmupPolynomialDecay
    from bert_tf.blockwise_attention import ATTENTION_FUNCTIONS
    from bert_tf.optimization import OPTIMIZERS
    from model_formats.encoders import ENCODERS
    from model_formats.pretraining_objectives import MASKED_WORDS

    encoder = ENCODERS[task["model"]].make_model
    attention = ATTENTION_FUNCTIONS[task.get("attention", "auto")]
    encoder = encoder(config, attention_function=attention, dtype=policy(task))
    model = MASKED_WORDS.make_model(encoder, None)
    optimizer = OPTIMIZERS["lamb" if task["model"] == "albert" else "adamw"](
        WarmupPolynomialDecay(RATE, num_train_steps=1_000_000, num_warmup_steps=0),
        weight_decay_rate=DECAY,
    )
    optimizer.build(model.trainable_variables)
    return model, optimizer


def project(task):
    """Prepares this project's step for timing; a task may also have "recompute" and "attention"."""
    import tensorflow as tf

    from bert_common.import_tensorflow import CLUSTERING_FLAGS, add_flags
    from bert_tf.training.distribution import make_strategy
    from bert_tf.training.step import StepConfig, TrainingStep
    from bert_tf.training.xla import choose_compilation, enable_auto_clustering

    add_flags("TF_XLA_FLAGS", CLUSTERING_FLAGS)  # listing the devices reads these flags
    compiled = choose_compilation(task["xla"], task["precision"])
    if compiled.auto_clustering:
        enable_auto_clustering()
    strategy = make_strategy("one_device")
    config, batch = task_config(task)
    with strategy.scope():
        model, optimizer = project_model(task, config)
    step_config = StepConfig(recompute=task.get("recompute", "none"))
    step = TrainingStep(model, optimizer, strategy, step_config, compiled)
    data = strategy.experimental_distribute_values_from_function(
        lambda _: {name: tf.constant(values) for name, values in batch.items()}
    )
    return timed(lambda: step(data)["loss"], float)


def matrix(task):
    """Prepares one product of square matrices for timing; a task has "size", their side."""
    import tensorflow as tf

    dtype = tf.as_dtype(task["precision"])
    a, b = (tf.cast(tf.random.normal((task["size"],) * 2), dtype) for _ in range(2))
    product = tf.function(lambda a, b: a @ b)
    return timed(lambda: product(a, b), lambda result: float(result[0, 0]))
