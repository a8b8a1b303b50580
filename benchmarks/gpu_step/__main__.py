"""Runs exported training steps with JAX, without TensorFlow.

On a machine with this project installed, without a GPU:

    python -m benchmarks.gpu_step export DIR                     programs for a table of sizes
    python -m benchmarks.gpu_step prepare DIR -- FLAGS           a training, by the flags of
                                                                 run_pretraining
    python -m benchmarks.gpu_step finish DIR -- FLAGS            its checkpoint in --output_dir

On a machine with JAX and NumPy, which needs only a checkout of this project and DIR:

    python -m benchmarks.gpu_step sizes DIR                             memory as XLA plans it
    python -m benchmarks.gpu_step train DIR --text=FILE --lessons=FILE  resumes if it was killed

`sizes --target=h100` compiles for an H100 without one. It needs `pip install "jax[cuda12]"`.
"""

import os

from benchmarks.common import flag, launch, position, positive, some_of

MODELS = (
    "bert_base", "bert_large", "albert_base", "albert_xlarge", "bert_tiny", "bert_mini",
    "bert_small", "bert_medium", "albert_large", "albert_xxlarge",
)  # fmt: skip
PRECISIONS, RECOMPUTE = ("float32", "bfloat16"), ("none", "block")
FLAGS = {
    "command": position(choices=("export", "prepare", "finish", "sizes", "train")),
    "folder": position(metavar="DIR"),
    "models": some_of(MODELS[:4], MODELS),
    "lengths": flag([128, 512], "of export"),
    "precisions": some_of(PRECISIONS, PRECISIONS),
    "recompute": some_of(RECOMPUTE, RECOMPUTE),
    "tokens": flag(16384, "of a batch to export: its rows x length", type=positive(int)),
    "batch": flag(None, "rows to export, instead of --tokens", type=positive(int)),
    "target": flag("here", "of sizes", choices=("here", "h100")),
    "text": flag(None, "to draw rows to train on from, of lesson_text.py"),
    "lessons": flag(None, "what the rows to train on are, see lessons.py"),
    "train_steps": flag(None, "updates in all", type=int),
    "save_seconds": 60.0,
    "seed": flag(0, "of the rows"),
    "freeze": flag(None, "weights that stay as they are, separated by commas"),
    "processes": flag(12, "that draw the rows", type=positive(int)),
    "eval_every": flag(500, "updates", type=positive(int)),
}


def main(arguments):
    """Runs the command."""
    command = arguments.command
    if command in ("export", "prepare", "finish"):
        from benchmarks.gpu_step import prepare

        return getattr(prepare, command)(arguments, arguments.flags)
    if command == "train":
        from benchmarks.gpu_step.train import train

        return train(arguments)
    if arguments.target == "h100":
        # Set before JAX is imported, as there is no GPU for autotuning or computing.
        os.environ.setdefault("XLA_FLAGS", "--xla_gpu_autotune_level=0")
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    from benchmarks.gpu_step.sizes import print_sizes

    return print_sizes(arguments.folder, arguments.target)


if __name__ == "__main__":
    launch(main, __doc__, FLAGS, passed_on=True)
