"""Declares the flags of all training programs, with the checks that they share."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from bert_common.errors import InputError
from bert_tf.config import EncoderConfig
from bert_tf.names import ATTENTION_NAMES
from model_formats.config_file import ConfigFile
from model_formats.encoders import ENCODERS
from model_formats.weights import check_weights
from run_scripts.flags import groups
from run_scripts.flags.declaration import flag
from run_scripts.flags.devices import DeviceFlags
from run_scripts.flags.number_lists import read_numbers
from run_scripts.flags.paths import FILE, FOLDER, NOTHING


@dataclasses.dataclass(frozen=True)
class ModelFlags:
    """The flags that name a model."""

    model_dir: str = groups.MODEL.input_folder(
        "The folder of an existing model, saved by this project or transformers, or downloaded "
        "from Google and unpacked. It provides the configuration, tokenizer and checkpoint (the "
        "best, else the newest), unless other flags name them."
    )
    config_file: str = groups.MODEL.input_file(
        f"The model's configuration file: {', '.join(e.config_file for e in ENCODERS.values())}, "
        "or config.json as saved by Hugging Face transformers."
    )
    bert_config_file: str = groups.MODEL.input_file(
        "BERT's configuration file: bert_config.json, or config.json as saved by Hugging Face"
        " transformers. Not needed with --model_dir."
    )
    albert_config_file: str = groups.MODEL.input_file(
        "ALBERT's configuration file: albert_config.json, or config.json as saved by Hugging "
        "Face transformers. Not needed with --model_dir."
    )
    init_checkpoint: str | None = groups.MODEL.optional(
        "The model's weights.", is_input=True, takes=(FILE, FOLDER, NOTHING)
    )

    @property
    def named_weights(self) -> str | None:
        """The weights that a flag names, or None if there is no flag or it does not apply."""
        return self.init_checkpoint


@dataclasses.dataclass(frozen=True)
class TrainingFlags(DeviceFlags, ModelFlags):
    """Flags for devices, checkpoints and curves, which do not depend on the task."""

    output_dir: str = groups.OUTPUT.output_folder(
        "The folder for checkpoints, TensorBoard curves and results.", required=True
    )
    keep_checkpoint_max: int = groups.UPKEEP.flag(
        5, "The number of recent checkpoints to keep. 0: all.", least=0
    )
    keep_checkpoint_every_steps: int = groups.UPKEEP.flag(
        0,
        "The number of updates between extra checkpoints that are never deleted. 0: none.",
        least=0,
    )
    save_summary_steps: int = groups.UPKEEP.flag(
        100, "The number of updates between points on the TensorBoard curves.", least=1
    )
    histogram_steps: int = groups.UPKEEP.flag(
        0,
        "The number of updates between TensorBoard histograms of each layer's weights and "
        "gradients. 0: none.",
        least=0,
    )
    max_bad_steps: int = groups.UPKEEP.flag(
        10,
        "Stop if more than this many consecutive updates have a non-finite loss or gradient. Such "
        "updates do not change the weights.",
        least=0,
    )
    profile_steps: str = groups.UPKEEP.optional(
        "The first and last update to trace for TensorBoard's profiler, as FROM,TO."
    )
    encoder_dropout: float = groups.HEAD.optional(
        "The dropout rate of hidden states and attention in training; 0 suits a small model with "
        "plenty of text. Does not change the saved configuration. Default: as in the "
        "configuration.",
        least=0,
        below=1,
        recorded=True,
    )
    bias_correction: bool = groups.OPTIMIZER.flag(
        False,
        "Apply bias correction to the optimizer's moments, as PyTorch's AdamW does; Google's "
        "optimizers do not.",
        recorded=True,
    )
    random_seed: int = flag(
        12345,
        "The seed for initial weights, dropout and the order of examples.",
        least=0,
        recorded=True,
    )
    distribution_strategy: str = groups.DEVICES.flag(
        "auto",
        "The devices to train on. one_device: one GPU, else the CPU. mirrored: all GPUs of this "
        "machine. multi_worker: the GPUs of all workers in TF_CONFIG. auto: multi_worker if "
        "TF_CONFIG lists several workers, else all GPUs, else the CPU.",
        choices=("auto", "one_device", "mirrored", "multi_worker"),
    )
    num_gpus: int = groups.DEVICES.optional(
        "The number of GPUs to use on each machine. Default: all.", least=1
    )
    all_reduce: str = groups.DEVICES.flag(
        "auto",
        "How to sum gradients across devices. nccl: with NCCL. ring: without NCCL, over gRPC "
        "between machines and by copying within a machine. auto: nccl on GPUs, else ring.",
        choices=("auto", "nccl", "ring"),
    )
    all_reduce_precision: str = groups.DEVICES.flag(
        "float32",
        "The dtype in which to sum gradients across devices. bfloat16 halves the traffic between "
        "GPUs, which helps over PCIe or Ethernet, but rounds the sums.",
        choices=("float32", "bfloat16"),
    )
    precision: str = groups.DEVICES.optional(
        "The dtype of matrix multiplications. Weights, optimizer moments, layer normalization and "
        "losses stay in float32. auto: bfloat16 if it is faster, else float32. NVIDIA GPUs since "
        "Ampere compute float32 in TF32 (docs/training.md). This flag is untested on GPUs. "
        "Default: float32.",
        choices=("float32", "bfloat16", "float16", "auto"),
    )
    xla: str = groups.DEVICES.flag(
        "auto",
        "Compile the training step with XLA. auto: on if possible, but off for fine-tuning "
        "runs too short to make up for the compilation time. In bfloat16 on a CPU, auto does "
        "not compile matrix multiplications.",
        choices=("auto", "on", "off"),
    )
    compilation_cache_dir: str = groups.DEVICES.output_folder(
        "The folder in which XLA keeps compiled code, which speeds up the next start. none: keep "
        "nothing. Default: compilation_cache in --output_dir on GPUs, none on a CPU."
    )
    recompute: str = groups.DEVICES.flag(
        "none",
        "What to recompute in the backward pass to save memory. none: nothing. block: each "
        "transformer block, from its input. This costs a second forward pass.",
        choices=("none", "block"),
    )
    attention: str = groups.DEVICES.flag(
        "auto",
        "How to compute attention. full: for all queries at once. blockwise: for one block of "
        "queries at a time, so that memory grows linearly with sequence length. auto: blockwise "
        "for 1,024 tokens or more, else full.",
        choices=ATTENTION_NAMES,
    )
    gradient_accumulation_steps: int = groups.DEVICES.flag(
        1,
        "The number of parts into which each device divides its share of a batch. More parts need "
        "less memory.",
        least=1,
    )
    steps_per_loop: int = groups.DEVICES.optional(
        "The maximum number of updates that TensorFlow runs before it returns to Python. Default: "
        "10 on GPUs, 1 on a CPU.",
        least=1,
    )
    iterations_per_loop: int = groups.TPU.unused(least=0)
    use_tpu: bool = groups.TPU.flag(
        False, "Must be off: this program trains on GPUs and CPUs.", refused=True
    )
    tpu_name: str = groups.TPU.unused()
    tpu_zone: str = groups.TPU.unused()
    gcp_project: str = groups.TPU.unused()
    master: str = groups.TPU.unused()
    num_tpu_cores: int = groups.TPU.unused(least=0)


def check_checkpoint(path: str | None) -> str | None:
    """Returns the weights of --init_checkpoint, which must exist; None if it is not given."""
    if path is None:
        return None
    try:
        return check_weights(path)
    except InputError as error:
        raise InputError(f"--init_checkpoint: {error}") from None


def check_outputs(
    values: Any, name: str, folder: str, outputs: Sequence[str] = ("output_dir", "export_dir")
) -> None:
    """Raises an `InputError` if an output folder is `folder`, the model folder of the flag `name`.

    The model's configuration would be replaced, and a resumed run would learn from its own weights.
    """
    for output in outputs:
        path = getattr(values, output, None)
        if path and os.path.isdir(path) and os.path.samefile(path, folder):
            raise InputError(
                f"--{output} must be another folder than the model's of --{name}. Received: {path}"
            )


def check_length(values: Any, config: EncoderConfig, unless: str = "") -> None:
    """Raises an `InputError` if the max_seq_length of flags or records is too high."""
    if values.max_seq_length > config.max_position_embeddings:
        raise InputError(
            "--max_seq_length must be at most max_position_embeddings of the configuration"
            f"{unless}. Received: {values.max_seq_length} and {config.max_position_embeddings}"
        )


NO_CONFIG = (
    "one of --config_file, --bert_config_file and --albert_config_file must be given, or "
    "--model_dir. Received: {}"
)


def given_config(values: ModelFlags) -> ConfigFile | None:
    """Returns the `ConfigFile` that a flag names, or None; raises an `InputError` for several."""
    types: dict[str, str | None] = {"config_file": None}
    types |= {e.config_flag: e.name for e in ENCODERS.values() if e.config_flag}
    given = {name: path for name in types if (path := getattr(values, name, None))}
    if len(given) > 1:
        raise InputError(NO_CONFIG.format(" and ".join(f"--{name}" for name in given)))
    return next((ConfigFile(path, types[name]) for name, path in given.items()), None)


def compilation_cache(values: TrainingFlags, gpus: bool) -> str | None:
    """Returns the folder where XLA keeps compiled code, or None."""
    if values.xla == "off" or values.compilation_cache_dir == "none":
        return None
    default = os.path.join(values.output_dir, "compilation_cache") if gpus else None
    return values.compilation_cache_dir or default


def read_profile_steps(values: TrainingFlags) -> tuple[int, int]:
    """Returns the first and the last update to trace; (0, 0) for none."""
    if values.profile_steps is None:
        return 0, 0
    first, last = read_numbers(
        "profile_steps",
        values.profile_steps,
        "FROM,TO: two steps, the first of them at least 1",
        lambda steps: len(steps) == 2 and 1 <= steps[0] <= steps[1],
    )
    return first, last
