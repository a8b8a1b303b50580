"""Chooses the transformers class of a model, with the part of config.json about labels.

Source: modeling_bert.py and modeling_albert.py of transformers, version 5.
"""

from typing import Any

from bert_common.errors import InputError
from finetuning.question_answering.beam_head import BeamSpanModel
from finetuning.tasks import ENCODER, TASKS, TransformersClass
from model_formats.loaded_model import LoadedModel

# Outputs of a pre-trained model's heads -> its class. The first row whose outputs exist is chosen.
ARCHITECTURES = {
    ("discriminator_logits",): TransformersClass(
        "ForPreTraining", None, ("generator", "masked_lm")
    ),
    ("masked_lm_logits", "next_sentence_logits"): TransformersClass("ForPreTraining", "fill-mask"),
    ("masked_lm_logits",): TransformersClass(
        "ForMaskedLM", "fill-mask", ("pooler", "next_sentence")
    ),
    (): ENCODER,
}

# The alternative if transformers has no such model.
OTHER_FORMATS = "--format=saved_model, onnx or keras can hold it"


def choose_architecture(loaded: LoadedModel) -> TransformersClass:
    """Returns the transformers class for a model; raises an `InputError` if there is none.

    A pre-trained model without the sentence head, or without the pooler that this head reads, is
    ForMaskedLM. A model without the masked-word head is the encoder alone, or an ELECTRA's
    discriminator.
    """
    _check_wiring(loaded)
    if loaded.task != "pretraining":
        return TASKS[loaded.task].transformers
    outputs = {*loaded.head_outputs()}
    return next(found for needed, found in ARCHITECTURES.items() if outputs.issuperset(needed))


def _check_wiring(loaded):
    """Raises an `InputError` if transformers computes the model differently, or not at all."""
    model, config = loaded.model, loaded.config
    if isinstance(model, BeamSpanModel):
        raise InputError(
            "a question-answering head for transformers must predict starts and ends alone "
            f"({OTHER_FORMATS}). Received: {loaded.source}, whose head searches "
            "with beams (start_n_top)"
        )
    layers = getattr(model, "feature_layers", ())
    if layers:
        raise InputError(
            f"a head for transformers must read the encoder's last layer ({OTHER_FORMATS}). "
            f"Received: {loaded.source}, trained with --feature_layers={','.join(map(str, layers))}"
        )
    act = loaded.encoder.head_act
    has_words = loaded.task == "pretraining" and "masked_lm_logits" in loaded.head_outputs()
    if act and has_words and config.hidden_act != act:
        raise InputError(
            f"transformers' head for masked words of an ELECTRA must have hidden_act {act} "
            f"({OTHER_FORMATS}). Received: {config.hidden_act}"
        )


def class_name(loaded: LoadedModel, architecture: TransformersClass) -> str:
    """Returns the name of the class in transformers, such as "BertForMaskedLM"."""
    return loaded.encoder.prefix + architecture.suffix


def predicts_scores(loaded: LoadedModel) -> bool:
    """Returns True if a model predicts a number for a text instead of classes."""
    has_classes = loaded.task in TASKS and TASKS[loaded.task].labels == "classes"
    return has_classes and not loaded.labels


def label_keys(loaded: LoadedModel) -> dict[str, Any]:
    """Returns the keys of config.json for the classes' names and the meaning of their logits."""
    if predicts_scores(loaded):
        return {"id2label": {"0": "score"}, "label2id": {"score": 0}, "problem_type": "regression"}
    if not loaded.labels:
        return {}
    keys = {
        "id2label": {str(i): label for i, label in enumerate(loaded.labels)},
        "label2id": {label: i for i, label in enumerate(loaded.labels)},
    }
    if TASKS[loaded.task].labels == "classes":
        kind = "multi" if loaded.model.multi_label else "single"
        keys["problem_type"] = f"{kind}_label_classification"
    return keys
