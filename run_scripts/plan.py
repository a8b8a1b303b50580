"""The program plan: prints what pre-training on a corpus needs, before anything is begun.

    python -m run_scripts.plan --corpus_gb=1,10,100 --model=bert_base --gpus=8

It reads no text and imports no TensorFlow: the arithmetic is in `run_scripts.planning`.
"""

import dataclasses
import sys

from bert_common.errors import InputError
from bert_tf.costs.cards import CARDS
from create_pretraining_data.engine.work_plan import COMPRESSIONS
from create_pretraining_data.instances.packing import MAX_SEQUENCES
from run_scripts.flags.declaration import flag, resolve_model_defaults
from run_scripts.flags.flag_files import SHIPPED
from run_scripts.flags.limits import LARGEST_VOCABULARY, MOST_DEVICES, MOST_PROCESSES
from run_scripts.flags.parser import parse, run_program
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.flags.training import given_config
from run_scripts.planning.measured import KOREAN_WIKIPEDIA
from run_scripts.planning.table import GIGABYTE, print_plan
from run_scripts.planning.training import Phase

# The jobs in `flagfiles/` that a plan is made of, a file for each phase.
JOBS = {
    "bert_mini": ("bert_mini_pretrain",),
    **{
        name: (f"{name}_8gpu_pretrain", f"{name}_8gpu_512_pretrain")
        for name in ("bert_base", "bert_large", "albert_base")
    },
}


# A plan's columns must fit on a terminal.
MOST_COLUMNS = 6

# The pieces of a vocabulary where neither a flag nor the configuration says how many.
USUAL_VOCABULARY = 32_000


@dataclasses.dataclass(frozen=True)
class CorpusPlanFlags:
    """Prints what pre-training on a corpus takes: records, disk, hours, memory, checkpoints.

    The model is trained as in the shipped jobs run_scripts/flagfiles/MODEL_8gpu_*.flags, or as in
    bert_mini_pretrain.flags. Text and records are taken to be like Korean Wikipedia, on which they
    were measured; the hours of GPUs follow from the number of operations and an assumed
    utilisation. docs/planning.md explains it.
    """

    corpus_gb: str = flag(
        None,
        "Gigabytes (10^9 bytes) of UTF-8 text; several, comma-separated, give a column each.",
        required=True,
    )
    model: str = flag("bert_base", "The model, and with it the shipped job.", choices=tuple(JOBS))
    vocab_size: int = flag(
        None,
        "The pieces of the vocabulary. Without it: the shipped job's.",
        least=1,
        most=LARGEST_VOCABULARY,
    )
    gpus: int = flag(8, "How many GPUs train together.", least=1, most=MOST_DEVICES)
    gpu: str = flag(
        None, "Their kind. Without it: a line for every kind that is known.", choices=tuple(CARDS)
    )
    utilisation: float = flag(
        0.35,
        "The share of a GPU's peak speed in bfloat16 that training reaches: an assumption, until "
        "benchmarks.speed.devices has measured it on yours.",
        above=0,
        most=1,
    )
    num_passes: float = flag(
        40.0,
        "Passes over the text, beside the updates of the shipped job (BERT's paper: about 40).",
        above=0,
        most=10_000,
    )
    cores: int = flag(
        16, "The cores of the machine that makes the records.", least=1, most=MOST_PROCESSES
    )
    masking: str = flag(
        "dynamic",
        "dynamic: packed rows whose masks are drawn while training, as in the jobs for eight "
        "GPUs; static: one sequence a row with stored masks, as in Google's programs and in "
        "bert_mini's job.",
        choices=("dynamic", "static"),
    )
    dupe_factor: int = flag(
        10, "For --masking=static: passes over the text that are stored.", least=1, most=10_000
    )
    compression: str = flag("none", "Of the record files.", choices=COMPRESSIONS)


def main(argv=None):
    """The program; returns the exit status."""
    return run_program(show_plan, CorpusPlanFlags, argv)


def show_plan(flags):
    """Prints the plan."""
    sizes = [gigabytes * GIGABYTE for gigabytes in read_sizes(flags.corpus_gb)]
    config, phases = read_job(flags.model, packed=flags.masking == "dynamic")
    if flags.vocab_size:
        config = dataclasses.replace(config, vocab_size=flags.vocab_size)
    for phase in phases:
        if phase.batch % flags.gpus:
            raise InputError(
                "--gpus must divide the batch of the shipped job. Received: "
                f"--gpus={flags.gpus}, a batch of {phase.batch}"
            )
    cards = [CARDS[flags.gpu]] if flags.gpu else list(CARDS.values())
    print_plan(flags, sizes, (config, phases), cards, KOREAN_WIKIPEDIA)


def read_sizes(text):
    """The numbers of --corpus_gb."""
    parts = text.split(",")
    try:
        sizes = [float(part) for part in parts]
    except ValueError:
        sizes = []
    if not (0 < len(sizes) <= MOST_COLUMNS and all(0 < size <= 1e6 for size in sizes)):
        raise InputError(
            f"--corpus_gb must be one to {MOST_COLUMNS} numbers above 0 and at most 1000000, "
            f"separated by commas. Received: {text}"
        )
    return sizes


def read_job(model, packed=True):
    """The configuration and the phases of a shipped job.

    Args:
        model: a key of `JOBS`.
        packed: whether a row holds several sequences.

    Returns:
        A `BertConfig` or `AlbertConfig`, and a list of `Phase`.
    """
    jobs = []
    for name in JOBS[model]:
        values = parse(PretrainFlags, ["plan", f"--flagfile={SHIPPED / name}.flags"])
        if not jobs:  # the second phase takes the configuration from the first one's folder
            file = given_config(values)
            config = file.config_with(USUAL_VOCABULARY)
        jobs.append(resolve_model_defaults(values, file.model_type))
    phases = [
        Phase(
            length=job.max_seq_length,
            predictions=job.max_predictions_per_seq,
            sequences=MAX_SEQUENCES if packed else 1,
            batch=job.train_batch_size,
            updates=job.num_train_steps,
        )
        for job in jobs
    ]
    return config, phases


if __name__ == "__main__":
    sys.exit(main())
