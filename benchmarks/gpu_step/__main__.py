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

import argparse
import importlib.util
import os
import sys

from bert_common.errors import InputError

MODELS = ("bert_base", "bert_large", "albert_base", "albert_xlarge")


def main():
    """Parses the command line and runs the command."""
    own, others = _split(sys.argv[1:])
    parser = _parser()
    arguments = parser.parse_args(own)
    if arguments.command in ("export", "prepare", "finish"):
        from benchmarks.gpu_step import prepare

        try:
            return getattr(prepare, arguments.command)(arguments, others)
        except (InputError, OSError) as error:
            sys.exit(f"error: {error}")
    if not importlib.util.find_spec("jax"):
        sys.exit(f"error: {arguments.command} needs JAX: pip install jax")
    if not os.path.isdir(arguments.folder):
        sys.exit(f"error: DIR must be a folder that export or prepare wrote: {arguments.folder}")
    if arguments.command == "train":
        for name, least in (("processes", 1), ("eval_every", 1), ("seed", 0)):
            if getattr(arguments, name) < least:
                parser.error(f"--{name} must be at least {least}")
        from benchmarks.gpu_step.train import train

        try:
            return train(arguments)
        except (InputError, OSError) as error:
            sys.exit(f"error: {error}")
    if arguments.target == "h100":
        # Set before JAX is imported, as there is no GPU for autotuning or computing.
        os.environ.setdefault("XLA_FLAGS", "--xla_gpu_autotune_level=0")
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    from benchmarks.gpu_step.sizes import print_sizes

    return print_sizes(arguments.folder, arguments.target)


def _split(arguments):
    """Splits arguments at "--" into those before it and those after it."""
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _parser():
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("gpu_step", description=__doc__, formatter_class=formatter)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, help):
        added = commands.add_parser(name, help=help)
        added.add_argument("folder", metavar="DIR")
        return added

    export = command("export", "write the programs of published sizes (TensorFlow)")
    export.add_argument("--models", default=",".join(MODELS))
    export.add_argument("--lengths", default="128,512")
    export.add_argument("--precisions", default="float32,bfloat16")
    export.add_argument("--recompute", default="none,block")
    export.add_argument("--tokens", type=int, default=16384, help="of a batch: its rows x length")
    export.add_argument("--batch", type=int, help="rows, instead of --tokens")
    command("prepare", "write programs and state of a training (TensorFlow)")
    command("finish", "write a training's state as a checkpoint (TensorFlow)")
    sizes = command("sizes", "print FLOPs and compiled memory (JAX)")
    sizes.add_argument("--target", choices=("here", "h100"), default="here")
    train = command("train", "train, or go on training (JAX)")
    train.add_argument("--text", required=True, help="draw rows from this, of lesson_text.py")
    train.add_argument("--lessons", required=True, help="what the rows are, see lessons.py")
    train.add_argument("--train_steps", type=int, help="updates in all")
    train.add_argument("--save_seconds", type=float, default=60.0)
    train.add_argument("--seed", type=int, default=0, help="of the rows")
    train.add_argument("--freeze", help="weights that stay as they are, separated by commas")
    train.add_argument("--processes", type=int, default=12, help="that draw the rows")
    train.add_argument("--eval_every", type=int, default=500, help="updates")
    return parser


if __name__ == "__main__":
    sys.exit(main())
