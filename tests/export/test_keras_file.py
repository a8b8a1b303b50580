"""A .keras file loads in a process that knows this project's classes, with the same outputs."""

import keras
import numpy as np
import pytest

from bert_tf.encoder import EncoderModel
from model_formats.keras_file import FILE, export
from model_formats.load_folder import load_folder
from tests.support.models.model_folders import drop_weights, write_folder
from tests.support.paths import printed_by

INPUTS = {"input_ids": np.array([[2, 7, 5, 3]], np.int32)}  # [B, T]


def exported(folder, output):
    output.mkdir()
    loaded = load_folder(str(folder))
    return loaded, export(loaded, str(output)).replace("{folder}", str(output))


@pytest.mark.parametrize("kind, task, settings", [
    ("bert", "classification", {"task_type": "multi_label"}),
    ("albert", "question_answering", {"start_n_top": 3, "end_n_top": 2}),
    ("albert", "ner", {"feature_layers": "-1,0"}),
])  # fmt: skip
def test_fine_tuned_models(kind, task, settings, tmp_path):
    write_folder(tmp_path / "in", kind, task, {"hidden_act": "gelu_erf"}, **settings)
    loaded, _ = exported(tmp_path / "in", tmp_path / "out")
    model = keras.saving.load_model(tmp_path / "out" / FILE)
    assert type(model) is type(loaded.model) and model.config == loaded.config
    inputs = {**INPUTS, "p_mask": np.zeros((1, 4), np.int32)}
    expected = loaded.model(inputs)
    for name, value in model(inputs).items():
        np.testing.assert_array_equal(value, expected[name])
    # The same folder is one of this project: with its task, tokenizer, configuration.
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {
        FILE, f"{kind}_config.json", "vocab.txt", "tokenizer_config.json", "pretraining.json",
        "finetuning.json",
    }  # fmt: skip


@pytest.mark.slow  # a second process with TensorFlow
def test_the_printed_command_loads_it(tmp_path):
    write_folder(tmp_path / "in")
    loaded, how = exported(tmp_path / "in", tmp_path / "out")
    assert how.startswith("import keras, bert_tf.model, bert_tf.pretraining; ")  # as the guide says
    statements, _, load = how.rpartition("; ")
    inputs = {**INPUTS, "masked_lm_positions": np.ones_like(INPUTS["input_ids"])}
    np.savez(tmp_path / "inputs.npz", **inputs)
    compute = f"outputs = {load}(dict(numpy.load({str(tmp_path / 'inputs.npz')!r})))"
    show = "print(float(outputs['masked_lm_logits'][0, 0, 7]))"
    printed = printed_by("-c", f"{statements}; import numpy; {compute}; {show}")
    logits = loaded.model(inputs)["masked_lm_logits"]
    assert float(printed) == pytest.approx(float(logits[0, 0, 7]), abs=1e-6)


def test_weights_that_are_missing(tmp_path):
    """Without the head for masked words the file holds the encoder; else a warning names them."""
    write_folder(tmp_path / "in")
    drop_weights(tmp_path / "in" / "model.ckpt-3", "cls/seq_relationship/")
    with pytest.warns(UserWarning, match="has no cls/seq_relationship/output_weights, "):
        exported(tmp_path / "in", tmp_path / "head")
    drop_weights(tmp_path / "in" / "model.ckpt-3", "cls/")
    exported(tmp_path / "in", tmp_path / "encoder")
    model = keras.saving.load_model(tmp_path / "encoder" / FILE)
    assert not isinstance(model, EncoderModel)
