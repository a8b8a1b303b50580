"""Runs an exported training step where JAX is, without TensorFlow.

On a machine with this project installed, no GPU needed:

    python -m benchmarks.gpu_step prepare DIR -- FLAGS           a training, by the flags of
                                                                 run_pretraining
    python -m benchmarks.gpu_step finish DIR -- FLAGS            its checkpoint in --output_dir

On a machine with JAX and NumPy, where a checkout of this project and DIR are all that is needed:

    python -m benchmarks.gpu_step train DIR --text=FILE --lessons=FILE  resumes if it was killed
"""

import argparse
import importlib.util
import os
import sys

from bert_common.errors import InputError


def main():
    """Parses the command line and does what the command says."""
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.command != "train":
        from benchmarks.gpu_step import prepare

        return getattr(prepare, arguments.command)(arguments.folder, arguments.flags)
    if not importlib.util.find_spec("jax"):
        sys.exit("error: train needs JAX: pip install jax")
    if not os.path.isdir(arguments.folder):
        sys.exit(f"error: DIR must be a folder that prepare wrote: {arguments.folder}")
    for name, least in (("processes", 1), ("eval_every", 1), ("seed", 0)):
        if getattr(arguments, name) < least:
            parser.error(f"--{name} must be at least {least}")
    from benchmarks.gpu_step.train import train

    try:
        return train(arguments)
    except (InputError, OSError) as error:
        sys.exit(f"error: {error}")


def _parser():
    formatter = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("gpu_step", description=__doc__, formatter_class=formatter)
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name, help):
        added = commands.add_parser(name, help=help)
        added.add_argument("folder", metavar="DIR")
        return added

    for name, help in (
        ("prepare", "write programs and state of a training (TensorFlow)"),
        ("finish", "write a training's state as a checkpoint (TensorFlow)"),
    ):
        command(name, help).add_argument("flags", nargs="*", help="of run_pretraining, after --")
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
