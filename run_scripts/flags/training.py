"""The flags that every training program has, with the checks that need no files."""

import dataclasses
import re

from albert_tf.config import AlbertConfig
from bert_common.errors import InputError
from bert_tf.config import BertConfig
from run_scripts.flags.declaration import flag
from run_scripts.flags.limits import LARGEST_BATCH, MAX_SEED, MOST_DEVICES, MOST_STEPS
from run_scripts.model_folder import CONFIG_NAMES

# Flags of the reference programs that have an effect only on a TPU.
TPU_FLAGS = (
    "tpu_name", "tpu_zone", "gcp_project", "master", "num_tpu_cores", "iterations_per_loop",
)  # fmt: skip


MODEL_DIR_HELP = (
    "A model's folder, written by this project or released and unpacked: the configuration, the "
    "checkpoint (the best, else the newest) and the tokenizer, where no other flag names them."
)


@dataclasses.dataclass(frozen=True)
class TrainingFlags:
    """Model, devices, checkpoints, curves: what does not depend on the task."""

    model_dir: str = flag(None, MODEL_DIR_HELP, is_input=True)
    bert_config_file: str = flag(None, "BERT's sizes, a bert_config.json.", is_input=True)
    albert_config_file: str = flag(None, "ALBERT's sizes, an albert_config.json.", is_input=True)
    output_dir: str = flag(
        None, "Where checkpoints, TensorBoard curves and results are written.", required=True
    )
    keep_checkpoint_max: int = flag(
        5, "How many of the newest checkpoints are kept; 0 keeps all.", least=0, most=MOST_STEPS
    )
    save_summary_steps: int = flag(
        100, "Updates between two points on TensorBoard.", least=1, most=MOST_STEPS
    )
    keep_checkpoint_every_steps: int = flag(
        0,
        "Checkpoints at multiples of this are saved, and kept besides the newest; 0 for none.",
        least=0,
        most=MOST_STEPS,
    )
    max_bad_steps: int = flag(
        10,
        "How many steps in a row may have a non-finite loss or gradient, and so change no weight, "
        "before the run stops.",
        least=0,
        most=MOST_STEPS,
    )
    profile_steps: str = flag(
        None, "The first and the last update to trace for TensorBoard's profiler: FROM,TO."
    )
    random_seed: int = flag(
        12345, "Decides new weights, the order of examples and dropout.", least=0, most=MAX_SEED
    )
    distribution_strategy: str = flag(
        "auto",
        "Devices: one; all GPUs of this machine; those of all workers in TF_CONFIG.",
        choices=("auto", "one_device", "mirrored", "multi_worker"),
    )
    num_gpus: int = flag(
        None, "How many GPUs (of each worker). Without it: all.", least=1, most=MOST_DEVICES
    )
    gradient_accumulation_steps: int = flag(
        1,
        "Microbatches that a device splits its share of a batch into, to need less memory.",
        least=1,
        most=LARGEST_BATCH,
    )
    steps_per_loop: int = flag(
        None,
        "The most updates without returning to Python. Without it: 10 on GPUs, 1 on a CPU.",
        least=1,
        most=MOST_STEPS,
    )
    precision: str = flag(
        "float32",
        "The type of matrix products; weights, moments, norms and losses are always float32. "
        "auto: bfloat16 where the hardware supports it. float16 has not been tried on a GPU.",
        choices=("float32", "bfloat16", "float16", "auto"),
    )
    recompute: str = flag(
        "none",
        "block: keep only the input of each block for the backward pass and recompute the rest; "
        "far less memory, for a second forward pass.",
        choices=("none", "block"),
    )
    xla: str = flag(
        "auto",
        "Whether XLA compiles the training step. auto: yes, unless it cannot, or a fine-tuning is "
        "too short to pay for it; with bfloat16 on a CPU only operations between matrix products.",
        choices=("auto", "on", "off"),
    )
    iterations_per_loop: int = flag(None, "For TPUs; has no effect here.", least=0, most=MOST_STEPS)
    use_tpu: bool = flag(False, "Accepted while off: this program trains on GPUs and CPUs.")
    tpu_name: str = flag(None, "For TPUs; has no effect here.")
    tpu_zone: str = flag(None, "For TPUs; has no effect here.")
    gcp_project: str = flag(None, "For TPUs; has no effect here.")
    master: str = flag(None, "For TPUs; has no effect here.")
    num_tpu_cores: int = flag(None, "For TPUs; has no effect here.", least=0, most=MOST_STEPS)


def check_training_flags(values):
    """Refuses values that cannot work with any files; notes those without effect."""
    if values.use_tpu:
        raise InputError("--use_tpu must be off: GPUs and CPUs are what this trains on")
    read_profile_steps(values)
    unused = [name for name in TPU_FLAGS if getattr(values, name) is not None]
    if unused:
        print(f"note: --{', --'.join(unused)}: for TPUs, without effect here")


def library_seed(values):
    """The seed of Keras and TensorFlow: --random_seed, unless that is a multiple of 2^31 - 1.

    TensorFlow treats such a seed as 0, and with 0 tf.data's shuffles cannot take a seed from the
    graph.
    """
    return values.random_seed % MAX_SEED or MAX_SEED - 1


def choose_model_type(values):
    """The model type that the flags name: "bert" or "albert"."""
    given = [name for name in CONFIG_NAMES if getattr(values, f"{name}_config_file")]
    if len(given) != 1:
        raise InputError(
            "one of --bert_config_file and --albert_config_file must be given, or --model_dir. "
            f"Received: {'both' if given else 'neither'}"
        )
    return given[0]


def read_config(values, model_type):
    """The model's configuration."""
    if model_type == "bert":
        return BertConfig.from_json_file(values.bert_config_file)
    return AlbertConfig.from_json_file(values.albert_config_file)


def read_profile_steps(values):
    """The first and the last update to trace; (0, 0) for none."""
    if values.profile_steps is None:
        return 0, 0
    match = re.fullmatch(r"(\d{1,10}),(\d{1,10})", values.profile_steps)
    first, last = map(int, match.groups()) if match else (0, 0)
    if not 1 <= first <= last:
        raise InputError(
            "--profile_steps must be FROM,TO: two steps, the first of them at least 1. Received: "
            f"{values.profile_steps}"
        )
    return first, last
