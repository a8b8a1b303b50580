"""Runs exported training steps where JAX is, without TensorFlow.

On a machine with this project installed, no GPU needed:

    python -m benchmarks.gpu_step export DIR                     programs for a table of sizes
    python -m benchmarks.gpu_step prepare DIR --updates=500 -- FLAGS
                                     a training, by the flags of run_pretraining
    python -m benchmarks.gpu_step finish DIR -- FLAGS            its checkpoint in --output_dir

On a machine with JAX and NumPy, where a checkout of this project and DIR are all that is needed:

    python -m benchmarks.gpu_step sizes DIR --target=here
    python -m benchmarks.gpu_step run DIR                               times
    python -m benchmarks.gpu_step train DIR --train_steps=500           resumes if it was killed
    python -m benchmarks.gpu_step train DIR --text=FILE --lessons=FILE  draws its rows from a text

`sizes --target=h100` compiles for an H100 without one: it needs `pip install "jax[cuda12]"`.
`run` also writes its numbers to DIR/results.jsonl.
"""

import argparse
import importlib.util
import json
import os
import sys

MODELS = ("bert_base", "bert_large", "albert_base", "albert_xlarge")


def main():
    """Parses the command line and does what the command says."""
    own, others = _split(sys.argv[1:])
    parser = _parser()
    arguments = parser.parse_args(own)
    _check(parser, arguments)
    if arguments.command in ("export", "prepare", "finish"):
        from benchmarks.gpu_step import prepare

        return getattr(prepare, arguments.command)(arguments, others)
    if not importlib.util.find_spec("jax"):
        sys.exit(f"error: {arguments.command} needs JAX: pip install jax")
    if not os.path.isdir(arguments.folder):
        sys.exit(f"error: DIR must be a folder that export or prepare wrote: {arguments.folder}")
    if arguments.command == "train":
        from benchmarks.gpu_step.train import train

        if arguments.text:
            return _train_by_lessons(arguments)
        return train(
            arguments.folder,
            arguments.train_steps,
            arguments.batches,
            arguments.save_seconds,
            arguments.seed,
        )
    if arguments.command == "time":
        from benchmarks.gpu_step.timing import time_exported

        return print(json.dumps(time_exported(arguments.folder, arguments.rounds)))
    if arguments.command == "sizes" and arguments.target == "h100":
        # Before JAX is imported: there is no card to try kernels on, or to compute with.
        os.environ.setdefault("XLA_FLAGS", "--xla_gpu_autotune_level=0")
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
    from benchmarks.gpu_step import report

    if arguments.command == "sizes":
        return report.print_sizes(arguments.folder, arguments.target)
    return report.run_all(arguments.folder, arguments.rounds, arguments.timeout)


def _train_by_lessons(arguments):
    from benchmarks.gpu_step.train import train_by_lessons
    from bert_common.errors import InputError

    try:
        return train_by_lessons(arguments.folder, arguments)
    except (InputError, OSError) as error:
        sys.exit(f"error: {error}")


def _check(parser, arguments):
    """Refuses flags of train that do not go together."""
    if arguments.command != "train":
        return
    if bool(arguments.text) != bool(arguments.lessons):
        parser.error("--text and --lessons must be given together")
    if arguments.text and arguments.batches:
        parser.error("--text must be without --batches")
    if arguments.freeze and not arguments.text:
        parser.error("--freeze must be with --text")
    for name, least in (("processes", 1), ("eval_every", 1), ("seed", 0)):
        if getattr(arguments, name) < least:
            parser.error(f"--{name} must be at least {least}")


def _split(arguments):
    """The arguments before "--", and those after it."""
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
    prepare = command("prepare", "write programs, batches and state of a training (TensorFlow)")
    prepare.add_argument("--updates", type=int, required=True, help="how many batches to write")
    command("finish", "write a training's state as a checkpoint (TensorFlow)")
    sizes = command("sizes", "print FLOPs and compiled memory (JAX)")
    sizes.add_argument("--target", choices=("none", "here", "h100"), default="none")
    for name, help in (("run", "time every program (JAX)"), ("time", "time one, for run")):
        timed = command(name, help)
        timed.add_argument("--rounds", type=int, default=10)
    commands.choices["run"].add_argument(
        "--timeout", type=float, default=300.0, help="seconds for each, compiling included"
    )
    train = command("train", "train, or go on training (JAX)")
    train.add_argument("--train_steps", type=int, help="updates in all")
    train.add_argument("--batches", help="another file than DIR/batches.npz")
    train.add_argument("--save_seconds", type=float, default=60.0)
    train.add_argument("--seed", type=int, default=0, help="of new weights, and of --text's rows")
    train.add_argument("--text", help="instead of batches: draw rows from this, of lesson_text.py")
    train.add_argument("--lessons", help="a file of what --text's rows are, see lessons.py")
    train.add_argument("--freeze", help="weights that stay as they are, separated by commas")
    train.add_argument("--processes", type=int, default=12, help="that draw --text's rows")
    train.add_argument("--eval_every", type=int, default=500, help="updates, with --text")
    return parser


if __name__ == "__main__":
    sys.exit(main())
