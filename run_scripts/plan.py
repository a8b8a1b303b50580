"""The plan program, which prints the costs of training on a corpus or of models of any size.

    python -m run_scripts.plan --corpus_gb=1,10,100 --model=bert_base --gpus=8
    python -m run_scripts.plan --config_file=my/albert_config.json --lengths=64,256

It does not read text or import TensorFlow; the arithmetic is in `run_scripts.planning`.
"""

import dataclasses
import functools
import sys

from bert_common.errors import InputError
from bert_tf.config import EncoderConfig
from bert_tf.costs.cards import CARDS
from create_pretraining_data.engine.work_plan import COMPRESSIONS
from create_pretraining_data.instances.packing import MAX_SEQUENCES
from model_formats.config_file import ConfigFile
from run_scripts.flags import groups
from run_scripts.flags.declaration import resolve_model_defaults
from run_scripts.flags.flag_files import SHIPPED
from run_scripts.flags.number_lists import read_numbers
from run_scripts.flags.parser import parse, run_program
from run_scripts.flags.paths import split_list
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.flags.training import given_config
from run_scripts.planning.sizes import print_tables, published_sizes
from run_scripts.planning.table import GIGABYTE, print_plan
from run_scripts.planning.training import Phase

# The jobs that a plan can be made for, with a file in `flagfiles/` for each phase. Each name begins
# with a key of `ENCODERS`.
JOBS = {
    "bert_mini": ("bert_mini_pretrain",),
    **{
        name: (f"{name}_8gpu_pretrain", f"{name}_8gpu_512_pretrain")
        for name in ("bert_base", "bert_large", "albert_base")
    },
}


# The columns must fit on a terminal.
MOST_COLUMNS = 6
MOST_LENGTHS = 4

# The vocabulary size if neither a flag nor the configuration gives one.
USUAL_VOCABULARY = 32_000


@dataclasses.dataclass(frozen=True)
class CorpusPlanFlags:
    """Prints what pre-training on a corpus takes: records, disk, hours, memory, checkpoints.

    Without --corpus_gb, it prints the parameters, operations and memory of the models in
    --config_file, or of all published sizes of BERT and ALBERT.

    A plan assumes that the model is trained as in the shipped jobs
    run_scripts/flagfiles/MODEL_8gpu_*.flags or bert_mini_pretrain.flags, and that the text is like
    Korean Wikipedia, on which records were measured. GPU hours are estimated from the number of
    operations and an assumed utilisation. docs/planning.md explains the plan.
    """

    EXAMPLE = "--corpus_gb=1,10,100 --model=bert_base --gpus=8"

    corpus_gb: str = groups.TASK.optional(
        "The size of the text in gigabytes (10^9 bytes of UTF-8). Comma-separated sizes give one "
        "column each. Default: no plan; the program prints tables that compare models instead."
    )
    config_file: str = groups.MODEL.input_file(
        "The configuration files of the models to compare, comma-separated. Default: all "
        "published sizes of BERT and ALBERT, with English vocabularies.",
        is_list=True,
        not_with=("corpus_gb",),
    )
    lengths: str = groups.UPDATES.flag(
        "128,512",
        "Comma-separated sequence lengths for the tables.",
        not_with=("corpus_gb",),
    )
    batch_size: int = groups.PROCESSES.flag(
        32,
        "The batch size, in examples, for the memory tables.",
        least=1,
        not_with=("corpus_gb",),
    )
    model: str = groups.MODEL.flag(
        "bert_base",
        "The model to plan for. Its training settings are read from run_scripts/flagfiles.",
        choices=tuple(JOBS),
        needs=("corpus_gb",),
    )
    vocab_size: int = groups.VOCABULARY.optional(
        f"The vocabulary size. Default: the --config_file's, or {USUAL_VOCABULARY:,}.",
        least=1,
        needs=("corpus_gb or config_file",),
    )
    gpus: int = groups.PROCESSES.flag(
        8, "The number of GPUs that train together.", least=1, needs=("corpus_gb",)
    )
    gpu: str = groups.PROCESSES.optional(
        "The GPU model to plan for. Default: all listed GPUs.",
        choices=tuple(CARDS),
        needs=("corpus_gb",),
    )
    utilisation: float = groups.PROCESSES.flag(
        0.35,
        "The share of a GPU's peak bfloat16 performance that training reaches. The default is an "
        "assumption; measure your GPU's share with python -m benchmarks.speed.devices.",
        above=0,
        most=1,
        needs=("corpus_gb",),
    )
    token_dropping: float = groups.UPDATES.flag(
        0.0,
        "The share of tokens that skip the middle layers in training (run_pretraining's "
        "--token_dropping). Ignored for ELECTRA trained with its generator.",
        least=0,
        below=1,
    )
    num_passes: float = groups.UPDATES.flag(
        40.0,
        "The number of passes over the text in the second of the two training runs that the "
        "plan shows. The first has the number of updates set in run_scripts/flagfiles. BERT "
        "was trained for about 40 passes.",
        above=0,
        needs=("corpus_gb",),
    )
    cores: int = groups.PROCESSES.flag(
        16,
        "The number of CPU cores on the machine that creates the record files.",
        least=1,
        needs=("corpus_gb",),
    )
    masking: str = groups.ROWS.flag(
        "dynamic",
        "How record files store training sequences. dynamic: several sequences in each "
        "record, masked during training. static: one sequence in each record, masked in "
        "advance, as in Google's programs.",
        choices=("dynamic", "static"),
        needs=("corpus_gb",),
    )
    dupe_factor: int = groups.ROWS.flag(
        10,
        "The number of copies of the text in the records, each with different masks.",
        least=1,
        needs=("corpus_gb", "masking=static"),
    )
    compression: str = groups.OUTPUT.flag(
        "none",
        "The compression of the record files.",
        choices=COMPRESSIONS,
        needs=("corpus_gb",),
    )


def show_plan(flags: CorpusPlanFlags) -> None:
    """Prints the plan for a corpus or the tables of models."""
    if not flags.corpus_gb:
        show_sizes(flags)
        return
    sizes = read_numbers(
        "corpus_gb",
        flags.corpus_gb,
        f"one to {MOST_COLUMNS} numbers above 0 and at most 1000000, separated by commas",
        lambda sizes: len(sizes) <= MOST_COLUMNS and all(0 < size <= 1e6 for size in sizes),
        float,
    )
    config, phases = read_job(flags.model, packed=flags.masking == "dynamic")
    config = with_vocabulary(flags, config)
    phases = [dataclasses.replace(p, token_dropping=flags.token_dropping) for p in phases]
    for phase in phases:
        if phase.batch % flags.gpus:
            raise InputError(
                "--gpus must divide the batch of the shipped job. Received: "
                f"--gpus={flags.gpus}, a batch of {phase.batch}"
            )
    cards = [CARDS[flags.gpu]] if flags.gpu else list(CARDS.values())
    print_plan(flags, [size * GIGABYTE for size in sizes], config, phases, cards)


def with_vocabulary(flags: CorpusPlanFlags, config: EncoderConfig) -> EncoderConfig:
    """Returns a configuration with the --vocab_size that is given, if any."""
    return dataclasses.replace(config, vocab_size=flags.vocab_size or config.vocab_size)


def show_sizes(flags: CorpusPlanFlags) -> None:
    """Prints the tables of models."""
    lengths = read_numbers(
        "lengths",
        flags.lengths,
        f"one to {MOST_LENGTHS} numbers of at least 2, separated by commas",
        lambda lengths: len(lengths) <= MOST_LENGTHS and min(lengths) >= 2,
    )
    models = published_sizes()
    if flags.config_file:
        files = map(ConfigFile, split_list(flags.config_file))
        configs = {file.path: file.config_with(USUAL_VOCABULARY) for file in files}
        models = {path: with_vocabulary(flags, config) for path, config in configs.items()}
    print_tables(models, lengths, flags.batch_size, flags.token_dropping)


def read_job(model: str, packed: bool = True) -> tuple[EncoderConfig, list[Phase]]:
    """Returns a shipped job's configuration and phases; `packed`: several sequences per row."""
    jobs: list[PretrainFlags] = []
    for name in JOBS[model]:
        values = parse(PretrainFlags, ["plan", f"--flagfile={SHIPPED / name}.flags"])
        assert values is not None  # it is None only for --help
        if not jobs:  # the second phase takes the configuration from the first one's folder
            file = given_config(values)
            assert file is not None  # every shipped job begins with one
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


main = functools.partial(run_program, show_plan, CorpusPlanFlags)

if __name__ == "__main__":
    sys.exit(main())
