"""Finds the sentence objectives of records, on which a model's results depend."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bert_common.errors import InputError
from bert_tf.checkpoint_files import latest_checkpoint
from create_pretraining_data.records.metadata import described_objective, one_value
from model_formats.model_folder import stages_of
from model_formats.training_record import trained_objective

if TYPE_CHECKING:
    from run_scripts.flags.pretrain import PretrainFlags

# --objective of create_pretraining_data -> what the loss and the accuracy are called in results.
# With both, label 1 says that B does not follow A: it is from elsewhere (nsp) or goes before (sop).
SENTENCE_OBJECTIVES = {"nsp": "next_sentence", "sop": "sentence_order"}


def read_objective(files: Sequence[str]) -> str | None:
    """The sentence objective of record files, "nsp", "sop" or "none"; None if it is not known.

    Raises:
        InputError: the files have several.
    """
    described = {path: described_objective(path) for path in files}
    return one_value(described, "all files of a flag must be made with one --objective")


def check_resumed_objective(values: "PretrainFlags", objective: str | None) -> None:
    """Refuses to go on with a training on records of another sentence objective.

    Args:
        values: `PretrainFlags`.
        objective: that of the records to train on.
    """
    newest = latest_checkpoint(values.output_dir) if values.do_train else None
    begun = trained_objective(stages_of(newest))
    if objective and begun and objective != begun:
        raise InputError(
            f"--input_file must hold records of --objective={begun}, with which the training in "
            f"{values.output_dir} began. Received: records of --objective={objective}"
        )


def measured_pairs(
    own: str | None, theirs: str | None, default: str
) -> tuple[str | None, str | None]:
    """Decides what the results of an evaluation's sentence pairs are called.

    Args:
        own: the objective that the model was trained with; None if it is not known.
        theirs: that of the records to evaluate on; None if it is not known.
        default: the name where neither is known.

    Returns:
        The name, None where no result would mean anything; and a line for the user, or None.
    """
    if theirs == "none":
        if own == "none":
            return None, None
        return None, "note: these records have no sentence pairs: only masked words are measured"
    name = SENTENCE_OBJECTIVES.get(theirs or own or "", default)
    if own == "none":
        return None, (
            "note: the model was trained with --objective=none, so it cannot classify sentence "
            f"pairs: {name}_accuracy is not measured"
        )
    if own and theirs and own != theirs:
        return name, (
            f"note: the model was trained with --objective={own}, these records were made with "
            f'--objective={theirs}: {name}_accuracy takes the model\'s "B does not follow A" for '
            "the records' label 1"
        )
    return name, None
