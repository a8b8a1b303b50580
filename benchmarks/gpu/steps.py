"""Times training steps on a GPU in turn with torch's steps or with variants of themselves.

    python -m benchmarks.gpu.steps --models=bert-base,bert-large,albert-base --lengths=128,512
    python -m benchmarks.gpu.steps --models=bert-large --lengths=512 --vary

All contenders of a table row stay alive and take turns, so the card's clock is the same for all.
A batch that does not fit is halved. Utilisation is the rate of the model's product operations
divided by the rate of one large product in the same rounds. Memory is shown with its estimate.
--vary compares the step with itself with other attention, without dropout, or with XLA flags.
"""

import dataclasses
import os
import statistics
import sys
import time

from benchmarks.common import cells, flag, launch, one_of, print_table, ratios, some_of
from benchmarks.contender import ContenderFailed
from benchmarks.speed import contenders as processes
from benchmarks.speed.contender_steps.shared import read_config
from bert_common.atomic_write import write_json
from bert_tf.costs.flops import training_flops
from bert_tf.memory_estimate import estimate_bytes
from create_pretraining_data.instances.packing import row_predictions

MASKED_SHARE = 0.15
MATRIX = 8192  # large enough for a product to reach a card's full speed
TOKENS = 2**15  # of the first batch to try, for example 256 rows of 128
HEADINGS = [
    "model", "rows of", "precision", "contender", "rows", "ms/step", "spread", "rows/s",
    "utilisation", "GiB (estimate)", "its time / plain",
]  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Variant:
    """A way to run the step."""

    contender: str = "project"  # a key of `contenders.KINDS`
    task: dict = dataclasses.field(default_factory=dict)  # values to change in the task
    config: dict = dataclasses.field(default_factory=dict)  # values to change in the configuration
    xla_flags: str = ""


PLAIN = {"this_project": Variant()}
PEERS = {**PLAIN, "torch_compiled": Variant("torch_bert", {"xla": "on"})}
VARIANTS = {
    **PLAIN,
    "full_attention": Variant(task={"attention": "full"}),
    "blockwise_attention": Variant(task={"attention": "blockwise"}),
    "without_dropout": Variant(
        config={"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    ),
    "without_attention_dropout": Variant(config={"attention_probs_dropout_prob": 0.0}),
    "recomputed_blocks": Variant(task={"recompute": "block"}),
    "without_triton": Variant(xla_flags="--xla_gpu_enable_triton_gemm=false"),
    "triton_for_any": Variant(xla_flags="--xla_gpu_triton_gemm_any=true"),
    "all_tilings": Variant(xla_flags="--xla_gpu_exhaustive_tiling_search=true"),
    "tuned_fusions": Variant(xla_flags="--xla_gpu_experimental_enable_fusion_autotuner=true"),
    "cudnn_layer_norm": Variant(xla_flags="--xla_gpu_enable_cudnn_layer_norm=true"),
    "cudnn_attention": Variant(xla_flags="--xla_gpu_enable_cudnn_fmha=true"),
    "without_command_buffers": Variant(xla_flags="--xla_gpu_enable_command_buffer="),
}
MODELS = ("bert-tiny", "bert-base", "bert-large", "albert-base", "albert-large")
FLAGS = {
    "models": some_of(("bert-base", "bert-large"), MODELS),
    "lengths": [128, 512],
    "precisions": some_of(["bfloat16"], ("bfloat16", "float32")),
    "rows": flag(None, "of a batch; without it as many as fit", type=int),
    "vary": False,
    "only": flag(None, "of the variants or peers", type=one_of(*VARIANTS, *PEERS)),
    "steps": flag(10, "of each contender in a round"),
    "matrix": MATRIX,
    "seconds": flag(220.0, "after which none is begun"),
    "report": flag(None, "a JSON file to write the numbers to"),
}


def main(arguments):
    """Prints the table row by row; --report also writes it as JSON."""
    numbers = []

    def rows():
        for answer in measure(arguments):
            numbers.append(answer)
            if arguments.report:
                write_json(arguments.report, numbers)
            yield row(answer)

    print_table(HEADINGS, rows())


def measure(arguments):
    """Yields the answers of every model, length and precision, until the time is up."""
    end = time.monotonic() + arguments.seconds
    variants = VARIANTS if arguments.vary else PEERS
    chosen = {k: v for k, v in variants.items() if not arguments.only or k in arguments.only}
    for model in arguments.models:
        for length in arguments.lengths:
            for precision in arguments.precisions:
                for name, variant in chosen.items():
                    if name in PLAIN and len(chosen) > 1:
                        continue  # the plain step takes turns with each of the others
                    if time.monotonic() > end:
                        return print("note: the time is up", file=sys.stderr)
                    yield from in_turns(arguments, model, length, precision, {name: variant})


def in_turns(arguments, model, length, precision, others):
    """Yields the answers of the plain step and of the others, which take turns with it."""
    config, task = describe(arguments, model, length, precision)
    described = {
        "model": model,
        "length": length,
        "precision": precision,
        "flops": training_flops(config, length, task["predictions"]),
    }
    matrix = processes.start("matrix", {**task, "size": arguments.matrix})
    contenders, answers = {}, []
    for name, variant in (PLAIN | others).items():
        try:
            contenders[name] = start(task, variant)
        except ContenderFailed as error:
            answers.append({**described, "contender": name, "error": error.last_line})
    for _ in range(arguments.rounds):
        for contender in (matrix, *contenders.values()):
            contender.run(arguments.steps)
    product = 2 * arguments.matrix**3 / statistics.median(matrix.seconds)  # FLOP/s
    plain = contenders.get(next(iter(PLAIN)))
    for name, contender in contenders.items():
        rows = contender.task["batch"]
        sizes = (rows, length, task["predictions"], precision)
        answers.append({
            **described, "contender": name, "rows": rows, "seconds": contender.seconds,
            "memory": contender.memory, "estimate": estimate_bytes(config, *sizes) / 2**30,
            "product": product,
            "ratios": [
                ratio * plain.task["batch"] / rows  # of the time per row
                for ratio in ratios(contender.seconds, plain.seconds)
            ] if plain else [],
        })  # fmt: skip
        contender.close()
    matrix.close()
    yield from answers


def describe(arguments, model, length, precision):
    """Returns the configuration of a model, and the task of its plain step."""
    kind, size = model.split("-")
    config = read_config(kind, size=size)
    task = {
        "model": kind, "config": dataclasses.asdict(config), "length": length,
        "batch": arguments.rows or max(8, TOKENS // length), "precision": precision, "xla": "auto",
        "predictions": row_predictions(length, MASKED_SHARE),
    }  # fmt: skip
    return config, task


def start(task, variant):
    """Starts a warm contender, halving the rows until they fit."""
    task = {**task, **variant.task, "config": {**task["config"], **variant.config}}
    if variant.xla_flags:  # after flags that are already set
        flags = f"{os.environ.get('XLA_FLAGS', '')} {variant.xla_flags}".strip()
        task["environment"] = {"XLA_FLAGS": flags}
    while True:
        try:
            return processes.start(variant.contender, task)
        except ContenderFailed as error:
            if not error.out_of_memory or task["batch"] == 1:
                raise
        task["batch"] //= 2


def row(answer):
    """Returns a row of the table."""
    head = [answer["model"], str(answer["length"]), answer["precision"], answer["contender"]]
    if "error" in answer:
        return [*head, answer["error"][:80], *[""] * (len(HEADINGS) - len(head) - 1)]
    seconds = [1000 * each for each in answer["seconds"]]
    speed = 1000 * answer["rows"] / statistics.median(seconds)
    ratio = f"{statistics.median(answer['ratios']):.3f}" if answer["ratios"] else ""
    return [
        *head, str(answer["rows"]), *cells(seconds, ".4g"), f"{speed:.4g}",
        f"{speed * answer['flops'] / answer['product']:.0%}",
        f"{answer['memory']:.1f} ({answer['estimate']:.1f})", ratio,
    ]  # fmt: skip


if __name__ == "__main__":
    launch(main, __doc__, FLAGS, rounds=5)
