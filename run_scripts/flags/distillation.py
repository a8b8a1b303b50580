"""Declares the flags of distillation, with the checks that need no TensorFlow."""

import dataclasses
from typing import Any, Self

from bert_common.errors import InputError
from bert_tf.config import EncoderConfig
from bert_tf.memory_estimate import teacher_bytes
from finetuning.datasets import DATASETS
from finetuning.settings import split_names
from finetuning.tables import composed
from model_formats.model_folder import ModelFolder
from model_formats.pretraining_objectives import MASKED_WORDS
from model_formats.weights import check_weights
from run_scripts.flags import groups
from run_scripts.flags.declaration import redeclare
from run_scripts.flags.training import check_outputs
from tokenization.base import TokenizerInterface

# The values of --distillation.
LOGITS, RELATIONS = "logits", "minilm"

# MiniLMv2 uses the first three, MiniLM "qk" and "vv" (`bert_tf.distillation.RelationTeacher`).
ALL_RELATIONS = ("qq", "kk", "vv", "qk")

_lasting = {"recorded": True, "kept": True}
_of_teacher = {**_lasting, "needs": ("teacher_dir",)}
_of_relations = {**_lasting, "needs": (f"distillation={RELATIONS}",)}


@dataclasses.dataclass(frozen=True)
class TeacherFlags:
    """The distillation flags of all programs with a teacher.

    The defaults of weight and temperature are from transformers' run_squad_w_distillation.py.
    """

    teacher_dir: str = groups.DISTILLATION.input_folder(
        "The folder of a teacher model, from which the model being trained (the student) also "
        "learns. Both need the same vocabulary and, in fine-tuning, the same task and labels.",
        **_lasting,
    )
    distillation_weight: float = groups.DISTILLATION.flag(
        0.5,
        "The weight w of the teacher in the loss: (1 - w) * loss on the labels + w * distance "
        "from the teacher.",
        above=0,
        most=1,
        **_of_teacher,
    )
    distillation_temperature: float = groups.DISTILLATION.flag(
        2.0,
        "The temperature t. Teacher and student are compared by softmax(logits / t); their "
        "distance is t^2 times the Kullback-Leibler divergence.",
        above=0,
        **_of_teacher,
    )


@dataclasses.dataclass(frozen=True)
class PretrainingTeacherFlags(TeacherFlags):
    """The distillation flags of run_pretraining."""

    distillation: str = groups.DISTILLATION.flag(
        LOGITS,
        "What the student learns from the teacher. logits: the distribution over the vocabulary "
        "at masked positions. minilm: the self-attention relations of one layer, as in MiniLMv2.",
        choices=(LOGITS, RELATIONS),
        **_of_teacher,
    )
    distillation_temperature: float = redeclare(
        TeacherFlags, "distillation_temperature", needs=("teacher_dir", f"distillation={LOGITS}")
    )
    distillation_relations: str = groups.DISTILLATION.flag(
        "qq,kk,vv",
        "The self-attention relations that the student learns, comma-separated: qq, kk, vv "
        "(queries, keys or values with themselves) or qk (queries with keys). qk,vv: attention "
        "distributions and value relations, as in the original MiniLM.",
        **_of_relations,
    )
    relation_heads: int = groups.DISTILLATION.optional(
        "The number of heads into which queries, keys and values are split before student and "
        "teacher are compared. This number must divide both hidden sizes. Default: the teacher's "
        "number of attention heads.",
        least=1,
        **_of_relations,
    )
    teacher_layer: int = groups.DISTILLATION.optional(
        "The teacher layer to learn from, counted from 1. Default: the last layer.",
        least=1,
        **_of_relations,
    )


@dataclasses.dataclass(frozen=True)
class GivenTeacher:
    """The teacher that flags name, checked as far as possible without TensorFlow."""

    folder: ModelFolder  # of --teacher_dir
    weight: float
    temperature: float
    layer: int | None = None  # whose relations are learned, from 1; None: outputs are learned
    # As in `bert_tf.distillation.RelationTeacher`.
    heads: int = 1
    relations: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, values: Any, config: EncoderConfig, tokenizer: TokenizerInterface | None
    ) -> Self | None:
        """Opens the teacher that a program's flags name for a student; None if they name none.

        Without the examples' `tokenizer`, the vocabularies are not compared.
        """
        if getattr(values, "teacher_dir", None) is None:
            return None
        distillation = getattr(values, "distillation", None)  # only in run_pretraining
        if distillation is not None and values.objective != MASKED_WORDS.name:
            raise InputError(
                f"--teacher_dir needs --objective={MASKED_WORDS.name}. "
                f"Received: --objective={values.objective}"
            )
        folder = ModelFolder.open(values.teacher_dir, what="--teacher_dir")
        check_weights(folder.checkpoint)
        # Fine-tuning exports into a new folder within --export_dir.
        outputs = ("output_dir",) if distillation is None else ("output_dir", "export_dir")
        check_outputs(values, "teacher_dir", folder.path, outputs)
        _check_vocabulary(folder, tokenizer)
        teacher = cls(folder, values.distillation_weight, values.distillation_temperature)
        if distillation == LOGITS:
            _check_logits(folder, config)
        _check_ids(folder, tokenizer.vocab_size if tokenizer else config.vocab_size)
        if distillation == RELATIONS:
            return dataclasses.replace(teacher, **_relations_of(values, config, folder.config))
        return teacher

    def check_length(self, longest: int) -> None:
        """Raises an `InputError` if sequences are longer than the teacher has positions."""
        positions = self.folder.config.max_position_embeddings
        if longest > positions:
            raise InputError(
                "--max_seq_length must be at most max_position_embeddings of the teacher. "
                f"Received: {longest}, {self.folder.path} with {positions}"
            )

    def limited(self, config: EncoderConfig) -> EncoderConfig:
        """Returns a student's configuration, limited to the teacher's positions and token types.

        Records are checked against it.
        """
        names = ("max_position_embeddings", "type_vocab_size")
        fewest = {n: min(getattr(config, n), getattr(self.folder.config, n)) for n in names}
        return dataclasses.replace(config, **fewest)

    def bytes_beside(
        self, rows: int, length: int, predictions: int, precision: str, blockwise: bool
    ) -> float:
        """Returns the memory that the teacher needs per device, in bytes; see `teacher_bytes`."""
        arrays = self.heads * len(self.relations)
        predictions = 0 if arrays else predictions
        config = self.folder.config
        return teacher_bytes(
            config, rows, length, predictions, arrays, precision, blockwise=blockwise
        )

    def describe(self) -> str:
        """Describes what the teacher teaches, for the line that announces it."""
        if self.layer is None:
            return f"its logits at temperature {self.temperature:g}, weight {self.weight:g}"
        return (
            f"the relations {', '.join(self.relations)} of layer {self.layer} in {self.heads} "
            f"heads, weight {self.weight:g}"
        )


def lasting_values(values: Any) -> dict[str, Any]:
    """Returns the flags for the training record; distillation flags only with a teacher."""
    has_teacher = getattr(values, "teacher_dir", None) is not None
    return {
        field.name: getattr(values, field.name)
        for field in dataclasses.fields(values)
        if field.metadata["recorded"]
        and (has_teacher or field.metadata["group"] != groups.DISTILLATION)
    }


def _check_vocabulary(folder, tokenizer):
    """Raises an `InputError` if the vocabularies differ; skips the check if one is not known."""
    try:
        own = folder.tokenizer
    except InputError as error:
        raise InputError(f"the tokenizer of --teacher_dir: {error}") from None
    if tokenizer is None or own is None or own.vocab == tokenizer.vocab:
        return
    common = sum(own.vocab.get(piece) == index for piece, index in tokenizer.vocab.items())
    raise InputError(
        f"--teacher_dir must hold a model with the same vocabulary: {len(tokenizer.vocab):,} "
        f"tokens. Received: {folder.path} with {len(own.vocab):,}, {common:,} of them the same"
    )


def _check_ids(folder, ids):
    """Raises an `InputError` if the teacher lacks a row for an id of the examples."""
    rows = folder.config.vocab_size
    if rows < ids:
        raise InputError(
            f"--teacher_dir must hold a model with the same vocabulary: {ids:,} ids. "
            f"Received: {folder.path} with {rows:,} rows in its table"
        )


def _check_logits(folder, config):
    """Raises an `InputError` if the logits of --distillation=logits cannot be compared."""
    if folder.task != "pretraining":
        raise InputError(
            f"--distillation={LOGITS} needs a teacher that predicts masked words. "
            f"Received: {folder.path}, trained for {folder.task}"
        )
    rows = folder.config.vocab_size
    if rows != config.vocab_size:
        raise InputError(
            f"--distillation={LOGITS} needs a teacher with as many rows in its table, "
            f"{config.vocab_size:,} (vocab_size of --config_file). "
            f"Received: {folder.path} with {rows:,}"
        )


def _relations_of(values, config, teacher):
    """Returns the fields of a `GivenTeacher` that --distillation=minilm adds."""
    relations = split_names(values.distillation_relations)
    if not relations or len({*relations}) < len(relations) or {*relations} - {*ALL_RELATIONS}:
        raise InputError(
            f"--distillation_relations must be some of {', '.join(ALL_RELATIONS)}, each once. "
            f"Received: {values.distillation_relations}"
        )
    heads = values.relation_heads or teacher.num_attention_heads
    widths = config.hidden_size, teacher.hidden_size
    if any(width % heads for width in widths):
        raise InputError(
            f"--relation_heads must divide the width of student and teacher, {widths[0]} and "
            f"{widths[1]}. Received: {heads}"
        )
    layers = teacher.num_block_calls
    layer = values.teacher_layer or layers
    if layer > layers:
        raise InputError(
            f"--teacher_layer must be at most the layers of the teacher, {layers}. "
            f"Received: {layer}"
        )
    return {"layer": layer, "heads": heads, "relations": relations}


def check_task(
    teacher: GivenTeacher, task: str, labels: tuple[str, ...], settings: dict[str, Any]
) -> None:
    """Raises an `InputError` if the teacher's task, labels or head differ from the student's."""
    folder = teacher.folder
    if folder.task != task:
        raise InputError(
            f"--teacher_dir must hold a model fine-tuned for the same task, {task}. "
            f"Received: {folder.path}, of {folder.task}"
        )
    theirs = _labels(folder.settings)
    if [*map(composed, theirs)] != [*map(composed, labels)]:
        raise InputError(
            f"--teacher_dir must hold a model with the same labels in the same order, "
            f"{_listed(labels)}. Received: {folder.path} with {_listed(theirs)}"
        )
    others = _head(folder.settings)
    for what, own in _head(settings).items():
        if own != others[what]:
            raise InputError(
                f"--teacher_dir must hold a model with the same head ({what}: {own}). "
                f"Received: {folder.path} with {others[what]}"
            )


def _labels(settings):
    dataset = DATASETS.get(settings.get("task_name", ""))
    return dataset.labels if dataset else split_names(settings.get("labels"))


def _head(settings):
    """Returns the properties of a head besides its labels, name -> value."""
    dataset = DATASETS.get(settings.get("task_name", ""))
    is_multi_label = settings.get("task_type") == "multi_label"
    return {
        "several labels": dataset.multi_label if dataset else is_multi_label,
        "a beam, start_n_top above 0": bool(settings.get("start_n_top")),
    }


def _listed(labels):
    return ",".join(labels[:10]) + (", …" if len(labels) > 10 else "") if labels else "none"
