"""Declares the flags that all fine-tuning programs share, with the checks that need no data."""

import dataclasses
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from bert_common.errors import InputError
from bert_tf.checkpoint_files import exists
from bert_tf.config import EncoderConfig
from bert_tf.names import OPTIMIZER_NAMES
from finetuning.readers import split_of_file
from finetuning.tasks import MAX_SEQ_LENGTH
from model_formats.weights import check_weights
from run_scripts.flags import groups
from run_scripts.flags.declaration import INT32_MAX, PerModel, is_given, redeclare
from run_scripts.flags.distillation import TeacherFlags
from run_scripts.flags.number_lists import ascends, read_numbers
from run_scripts.flags.tokenizer import TokenizerFlags
from run_scripts.flags.training import TrainingFlags, read_profile_steps

if TYPE_CHECKING:
    from finetuning.downstream_task import TaskDataset
    from run_scripts.given_model import GivenModel

# The split that --eval_on=train_part takes from the training examples.
TRAIN_PART = "train_part"


@dataclasses.dataclass(frozen=True)
class FinetuneFlags(TokenizerFlags, TrainingFlags):
    """The flags of all fine-tuning programs, which add the flags of their task."""

    data_dir: str = groups.FILES.input_folder("The folder with the task's files.", required=True)
    init_checkpoint: str | None = redeclare(
        TrainingFlags,
        "init_checkpoint",
        help="The weights to start training from or, without --do_train, the fine-tuned weights to"
        " use (in run_squad, only if --output_dir holds no checkpoint): a checkpoint, a "
        "safetensors file, or a folder with either. From a folder, the best checkpoint is "
        "used, else the newest.",
    )
    max_seq_length: int = groups.ROWS.setting(
        MAX_SEQ_LENGTH,
        "The maximum number of tokens in an example, including special tokens; the rest is cut "
        "off.",
    )
    do_train: bool = groups.UPDATES.flag(False, "Train the model.")
    do_eval: bool = groups.EVALUATION.flag(
        False,
        "Evaluate the model on every labelled split except train, unless --eval_on says otherwise.",
    )
    do_predict: bool = groups.PREDICTION.flag(
        False,
        "Write predictions to --output_dir for the examples of --predict_split or, in "
        "run_classifier and run_ner, of --predict_file if it is given.",
    )
    eval_on: str = groups.EVALUATION.flag(
        "own",
        "What to evaluate on. own: the task's dev and test splits. train_part: about a tenth of "
        "the training examples, held out from training, the same for all seeds; use it to choose "
        "hyperparameters without looking at dev and test.",
        choices=("own", TRAIN_PART),
        kept=True,  # else a resumed run could evaluate on training texts
    )
    predict_split: str = groups.PREDICTION.optional(
        "The split, such as train, dev or test, whose examples --do_predict predicts. "
        "Default: the held-out part if --eval_on=train_part, else test if present, else dev."
    )
    train_batch_size: int = groups.UPDATES.flag(
        32,
        "The number of examples per update, across all devices.",
        least=1,
        recorded=True,
    )
    eval_batch_size: int = groups.EVALUATION.flag(
        8,
        "The number of examples per evaluation batch, across all devices.",
        least=1,
    )
    predict_batch_size: int = groups.ANSWERS.flag(
        8,
        "The number of examples per prediction batch, across all devices.",
        least=1,
    )
    optimizer: str = groups.OPTIMIZER.flag(
        "adamw",
        "The optimizer, implemented as in Google's programs.",
        choices=OPTIMIZER_NAMES,
        recorded=True,
    )
    learning_rate: float = groups.OPTIMIZER.flag(
        5e-5,
        "The peak learning rate, reached at the end of the warm-up.",
        above=0,
        recorded=True,
    )
    num_train_epochs: float = groups.UPDATES.flag(
        PerModel(3.0, {"albert": None}),
        "The number of passes over the training examples.",
        above=0,
        recorded=True,
        not_with=("train_step",),
    )
    train_step: int = groups.UPDATES.flag(
        PerModel(None, {"albert": 1000}),
        "The number of training updates.",
        least=1,
        recorded=True,
        not_with=("num_train_epochs",),
    )
    warmup_proportion: float = groups.UPDATES.flag(
        PerModel(0.1, {"albert": None}),
        "The share of updates used for warm-up.",
        least=0,
        below=1,
        recorded=True,
        not_with=("warmup_step",),
    )
    warmup_step: int = groups.UPDATES.flag(
        PerModel(None, {"albert": 0}),
        "The number of warm-up updates.",
        least=0,
        recorded=True,
        not_with=("warmup_proportion",),
    )
    eval_every_steps: int = groups.EVALUATION.flag(
        0,
        "The number of updates between evaluations during training, which find the best checkpoint."
        " Without a dev split, a twentieth of the training examples are held out for "
        "evaluation. 0: no evaluation during training; the last checkpoint is used.",
        least=0,
    )
    patience: int = groups.EVALUATION.flag(
        0,
        "Stop training after this many consecutive evaluations without a better result. 0: never.",
        least=0,
        needs=("eval_every_steps",),
    )
    early_stopping: int = groups.EVALUATION.flag(
        0,
        "The same as --patience.",
        least=0,
        needs=("eval_every_steps",),
        not_with=("patience",),
    )
    max_train_examples: int = groups.RUNS.flag(
        0,
        "The number of training examples to use, sampled with --random_seed in about the original "
        "class proportions. 0: all.",
        least=0,
        recorded=True,
    )
    num_seeds: int = groups.RUNS.flag(
        1,
        "The number of models to train, each in its own folder in --output_dir, with "
        "consecutive seeds that start at --random_seed. The mean and standard deviation of "
        "the results are printed.",
        least=1,
    )
    save_checkpoints_steps: int = groups.RUNS.flag(
        1000, "The number of updates between checkpoints.", least=1
    )
    bucket_boundaries: str = groups.BATCHES.flag(
        "auto",
        "The lengths to which batches are padded, comma-separated. Each batch holds examples of "
        "similar length. auto: up to seven lengths that suit the examples. none: --max_seq_length "
        "only.",
    )
    classifier_dropout: float = groups.HEAD.flag(
        0.1, "The dropout rate before the output layer.", least=0, below=1, recorded=True
    )
    cached_dir: str = groups.COMPATIBILITY.unused()
    albert_hub_module_handle: str = groups.COMPATIBILITY.optional(
        "Must be left out: download and unpack the module, and give its folder as --model_dir.",
        refused=True,
    )

    @classmethod
    def as_meant(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Moves --early_stopping to `patience`."""
        return {**given, "patience": given["patience"] or given["early_stopping"]}


@dataclasses.dataclass(frozen=True)
class TextFlags(TeacherFlags, FinetuneFlags):
    """The flags of run_classifier and run_ner, whose heads can read any layers of the encoder."""

    data_dir: str = redeclare(FinetuneFlags, "data_dir", required=False)
    predict_file: str = groups.FILES.input_file(
        "The file to predict.", needs=("do_predict",), not_with=("predict_split",)
    )
    feature_layers: str = groups.LAYERS.optional(
        "The encoder layers whose outputs are concatenated as input to the head, such as "
        "-1,-2,-3,-4 (the last four); 0 is the embedding output. Default: the pooled output "
        "in run_classifier, the last layer in run_ner."
    )
    freeze_encoder: bool = groups.LAYERS.flag(
        False, "Train only the task's head, not the encoder.", recorded=True
    )


Flags = TypeVar("Flags", bound=FinetuneFlags)


def check_finetune_flags(values: FinetuneFlags) -> None:
    """Raises an `InputError` for invalid values, without reading files."""
    exports = getattr(values, "export_dir", None)  # which only some programs have
    if not (values.do_train or values.do_eval or values.do_predict or exports):
        raise InputError("--do_train, --do_eval or --do_predict must be on. Received: all off")
    read_profile_steps(values)
    if values.random_seed + values.num_seeds - 1 > INT32_MAX:
        raise InputError(
            f"--random_seed + --num_seeds must be at most {INT32_MAX + 1}. Received: "
            f"--random_seed={values.random_seed}, --num_seeds={values.num_seeds}"
        )
    if values.eval_on == TRAIN_PART and not values.do_train:
        raise InputError(
            f"--eval_on={TRAIN_PART} needs --do_train: another training may have used that part. "
            f"Received: --eval_on={TRAIN_PART} without it"
        )
    if values.do_train and values.do_predict and values.predict_split == "train":
        raise InputError("--predict_split=train needs a run without --do_train. Received: both")


def split_of_predicted_file(values: TextFlags, usual: str) -> dict[str, str]:
    """Returns {"predict_split": the split of --predict_file}; {} if it is not given.

    `usual` is the usual ending of such a file, as in `finetuning.readers.name_of_file`.
    """
    if not values.predict_file:
        return {}
    return {"predict_split": split_of_file(values.predict_file, usual)}


def unused_steps(given: FinetuneFlags) -> dict[str, None]:
    """Returns name -> None for each flag that a given flag of the same meaning makes unused."""
    other = {"num_train_epochs": "train_step", "warmup_proportion": "warmup_step"}
    other |= {step: share for share, step in other.items()}
    return {other[name]: None for name in other if is_given(given, name)}


def read_boundaries(text: str, longest: int) -> tuple[int, ...] | None:
    """Returns the lengths of --bucket_boundaries, ascending up to `longest`; None for "auto"."""
    if text == "auto":
        return None
    if text in ("none", ""):
        return (longest,)
    lengths = read_numbers(
        "bucket_boundaries",
        text,
        f"auto, none, or ascending lengths up to --max_seq_length, {longest}",
        lambda lengths: ascends(lengths) and lengths[-1] <= longest,
    )
    return tuple(sorted({*lengths, longest}))


def read_articles(text: str | None, name: str) -> tuple[int, int] | None:
    """Returns (first, end) of the articles that the flag `name` names; None for all articles."""
    if text is None:
        return None
    first, end = read_numbers(
        name,
        text,
        "two numbers, the first smaller, such as 0:100",
        lambda numbers: len(numbers) == 2 and 0 <= numbers[0] < numbers[1],
        separator=":",
    )
    return first, end


def head_options(values: TextFlags, config: EncoderConfig) -> dict[str, Any]:
    """Returns what flags say of a text task and its head, by the names of the task's fields."""
    layers = values.feature_layers
    return {
        "max_length": values.max_seq_length,
        "dropout": values.classifier_dropout,
        "freeze_encoder": values.freeze_encoder,
        "feature_layers": read_layers("feature_layers", layers, config) if layers else (),
    }


def read_layers(name: str, text: str, config: EncoderConfig) -> tuple[int, ...]:
    """Returns the layers of the model that a flag lists; 0 is the embedding output."""
    number = config.num_block_calls + 1
    return read_numbers(
        name,
        text,
        f"numbers from {-number} to {number - 1}, separated by commas: the model has "
        f"{config.num_block_calls} layers, of which 1 is the first; 0 is the embedding output",
        lambda layers: all(-number <= layer < number for layer in layers),
    )


def find_fine_tuned(values: FinetuneFlags, model: "GivenModel") -> str:
    """Returns the checkpoint for evaluation, prediction or export without training."""
    source = model.checkpoint or values.output_dir
    if not (os.path.exists(source) or exists(source)):
        raise InputError(
            "without --do_train there must be a fine-tuned checkpoint: --init_checkpoint or one in "
            f"--output_dir. Received: none at {source} (--do_train trains one)"
        )
    return check_weights(source)


def output_dirs(values: FinetuneFlags) -> list[str]:
    """Returns the folders to train in: one, or one for each of several seeds."""
    if values.num_seeds == 1:
        return [values.output_dir]
    seeds = range(values.random_seed, values.random_seed + values.num_seeds)
    return [os.path.join(values.output_dir, f"seed-{seed}") for seed in seeds]


def measured_splits(dataset: "TaskDataset") -> list[str]:
    """Returns the splits that a model can be evaluated on, the main one first."""
    return [name for name, labelled in dataset.splits.items() if labelled and name != "train"]


def evaluated_splits(values: FinetuneFlags, dataset: "TaskDataset") -> list[str]:
    """Returns the splits that a run evaluates on, the main one first."""
    return [TRAIN_PART] if values.eval_on == TRAIN_PART else measured_splits(dataset)


def reads_split(values: FinetuneFlags, split: str) -> bool:
    """Returns True if a run trains, evaluates or predicts on train, dev or test, if it exists."""
    if values.do_predict and values.predict_split == split:
        return True
    if split == "train":
        return values.do_train
    evaluates = values.do_eval or values.do_predict or values.eval_every_steps > 0
    return evaluates and values.eval_on != TRAIN_PART


def split_to_predict(values: FinetuneFlags, splits: Iterable[str]) -> str:
    """Returns --predict_split, else the part of train if evaluated on, else test, else dev."""
    if values.eval_on == TRAIN_PART and not values.predict_split:
        return TRAIN_PART
    return values.predict_split or ("test" if "test" in splits else "dev")
