"""Exports a training step as two StableHLO programs that do not need TensorFlow.

`gradients` is `TrainingStep.forward_backward`, and `update` is `Update.new_state`. They are pure
functions, compiled for XLA's GPU platform on a machine that may have no GPU. A program's folder
holds both, compressed, and program.json with the names, shapes and types of their arguments and
outputs in order, the model's configuration, and the cost of a step. The names of arguments and
outputs are paths such as "weights/bert/pooler/dense/kernel", with Google's names of the weights; an
output replaces the argument of the same name in the next step.
"""

import dataclasses
import json
import lzma
import os

import tensorflow as tf

from benchmarks.gpu_step.program_text import shorten
from bert_common.atomic_write import atomic_write
from bert_tf.checkpoint import google_variables
from bert_tf.costs.flops import training_flops
from bert_tf.memory_estimate import count_weights, estimate_bytes
from bert_tf.training.replicas import graph
from bert_tf.training.step import TrainingStep
from bert_tf.training.xla import Compilation

PLATFORM = "GPU"


def export_step(folder, state, config, batch, details):
    """Writes the programs of a training step.

    Args:
        folder: the output folder; its name is the program's name.
        state: a `TrainingState` without a loss scale.
        config: a `StepConfig` without length buckets.
        batch: the features of one batch, name -> array or `tf.TensorSpec`.
        details: a dict for program.json with "model", "precision" and other details of the step.
    """
    strategy = tf.distribute.get_strategy()
    compilation = Compilation(whole=True, auto_clustering=False, update=True)
    step = TrainingStep(state.model, state.optimizer, strategy, config, compilation)
    specs = {name: tf.TensorSpec(value.shape, value.dtype) for name, value in batch.items()}
    texts, signatures = _programs(step, specs)
    rows, length = specs["input_ids"].shape
    predictions = specs["masked_lm_ids"].shape[1]
    sequences = specs["sequence_starts"].shape[1] if "sequence_starts" in specs else 1
    sizes = (state.model.config, rows, length, predictions)
    memory = estimate_bytes(
        state.model.config,
        rows // config.gradient_accumulation_steps,
        *sizes[2:],
        details["precision"],
        config.recompute,
        slots=len(state.optimizer.slots),
    )
    description = {
        **details,
        "config": dataclasses.asdict(state.model.config),
        "recompute": config.recompute,
        "gradient_accumulation_steps": config.gradient_accumulation_steps,
        **{"batch": rows, "length": length, "predictions": predictions},
        "weights": count_weights(state.model.config),
        "flops": rows * training_flops(state.model.config, length, predictions, sequences),
        "estimated_bytes": int(memory),
        "optimizer": type(state.optimizer).__name__,
        "slots": [slot.suffix for slot in state.optimizer.slots.values()],
        "denominators": {
            name: {"weights": loss.weights, "epsilon": loss.epsilon}
            for name, loss in state.model.objective.losses.items()
            if loss.weights in specs
        },
        "programs": signatures,
    }
    os.makedirs(folder, exist_ok=True)
    for name, text in texts.items():
        with atomic_write(os.path.join(folder, f"{name}.mlir.xz")) as file:
            file.write(lzma.compress(text.encode("utf-8")))
    with atomic_write(os.path.join(folder, "program.json")) as file:
        file.write(json.dumps(description).encode("utf-8"))


def _programs(step, batch):
    """Returns the texts and the signatures of both programs, two dicts by program name."""
    names = {variable.path: name for name, variable in google_variables(step.model).items()}
    names = [names[variable.path] for variable in step.weights]
    weights = [tf.TensorSpec(v.shape, v.dtype) for v in step.weights]
    scalar = tf.TensorSpec([], step.dtype)
    denominators = {
        name: scalar for name, loss in step.model.objective.losses.items() if loss.weights in batch
    }
    iterations, replica = tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.int32)
    arguments = (weights, iterations, replica, batch, denominators, scalar)
    labels = (
        [f"weights/{name}" for name in names],
        "iterations",
        "replica",
        {name: f"batch/{name}" for name in batch},
        {name: f"denominators/{name}" for name in denominators},
        "scale",
    )
    concrete = step.forward_backward.get_concrete_function(*arguments)
    sums, gradients = concrete.structured_outputs
    used = [i for i, gradient in enumerate(gradients) if gradient is not None]
    outputs = (
        {name: f"sums/{name}" for name in sums},
        [f"gradients/{names[i]}" if i in used else None for i in range(len(names))],
    )
    text, signature = _export(step.forward_backward, arguments, labels, outputs)
    update_text, update_signature = _export_update(step, used, names, sums, denominators)
    return (
        {"gradients": text, "update": update_text},
        {"gradients": signature, "update": update_signature},
    )


def _export_update(step, used, names, sums, denominators):
    """Returns the text and the signature of the update of the weights `used`."""
    suffixes = [slot.suffix for slot in step.optimizer.slots.values()]
    specs = [tf.TensorSpec(step.weights[i].shape, step.dtype) for i in used]
    names = [names[i] for i in used]
    scalar = tf.TensorSpec([], step.dtype)
    state = {
        "weights": specs,
        "slots": [[spec] * len(suffixes) for spec in specs],
        "iterations": tf.TensorSpec([], tf.int64),
        "skipped": [tf.TensorSpec([], tf.int64)],
        "loss_scale": [],
        "token_losses": [],
    }
    labels = {
        "weights": [f"weights/{name}" for name in names],
        "slots": [[f"slots/{name}/{suffix}" for suffix in suffixes] for name in names],
        "iterations": "iterations",
        "skipped": ["skipped"],
        "loss_scale": [],
        "token_losses": [],
    }
    arguments = (
        state, {name: scalar for name in sums}, denominators, specs, tf.TensorSpec([], tf.float32)
    )  # fmt: skip
    argument_labels = (
        labels,
        {name: f"sums/{name}" for name in sums},
        {name: f"denominators/{name}" for name in denominators},
        [f"gradients/{name}" for name in names],
        "learning_rate",
    )

    def update(state, *values):
        return step.update.new_state(tuple(used), state, values)

    update = graph(update, jit_compile=True)
    _, metrics = update.get_concrete_function(*arguments).structured_outputs
    outputs = (labels, {name: f"metrics/{name}" for name in metrics})
    return _export(update, arguments, argument_labels, outputs)


def _export(function, arguments, labels, output_labels):
    """Returns the text of a compiled function, and its signature for program.json.

    Args:
        function: a `tf.function`.
        arguments: the `tf.TensorSpec`s of its arguments, a nested structure.
        labels: the names of its arguments, in the same structure.
        output_labels: the names of its outputs, in their structure; None for an output of None.
    """

    def flat(*values):  # `experimental_get_compiler_ir` accepts only tensors as arguments
        return function.python_function(*tf.nest.pack_sequence_as(arguments, values))

    flat, specs = graph(flat, jit_compile=True), tf.nest.flatten(arguments)
    make_text = flat.experimental_get_compiler_ir(*specs)
    text = shorten(make_text(stage="stablehlo", platform_name=PLATFORM))
    results = flat.get_concrete_function(*specs).structured_outputs
    signature = {"arguments": [], "outputs": []}
    pairs = (("arguments", arguments, labels), ("outputs", results, output_labels))
    for kind, values, names in pairs:
        for name, value in zip(tf.nest.flatten(names), tf.nest.flatten(values), strict=True):
            if name is not None:
                row = {"name": name, "shape": list(value.shape), "dtype": value.dtype.name}
                signature[kind].append(row)
    return text, signature
