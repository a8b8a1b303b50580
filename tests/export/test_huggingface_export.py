"""What a folder for transformers holds, without torch: names, shapes, configuration, shards, card.

`test_transformers_export` loads such folders with transformers.
"""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file

from bert_common.errors import InputError
from model_formats.huggingface.export import export, split_into_shards
from model_formats.load_folder import load_folder
from tests.support.models.model_folders import drop_weights, write_folder
from tests.support.paths import TEST_DATA

FOLDERS = TEST_DATA / "transformers"


def exported(folder, output, **options):
    """The configuration of a folder's export, and how it is loaded."""
    output.mkdir()
    how = export(load_folder(str(folder)), str(output), **options)
    return json.loads((output / "config.json").read_text()), how


def weights(folder):
    return load_file(folder / "model.safetensors")


def card(folder, output, **options):
    exported(folder, output, **options)
    return (output / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    "name", ("bert_erf", "bert_classifier", "albert", "electra_small", "electra_base")
)
def test_what_transformers_wrote_is_written_again(name, tmp_path):
    """Its class, and all arrays under the same names, those that are transposed too."""
    config, how = exported(FOLDERS / name, tmp_path / "out")
    (architecture,) = json.loads((FOLDERS / name / "config.json").read_text())["architectures"]
    assert config["architectures"] == [architecture]
    assert how.split("; ")[0] == f"transformers.{architecture}.from_pretrained('{{folder}}')"
    wanted, found = weights(FOLDERS / name), weights(tmp_path / "out")
    np.testing.assert_equal(found, wanted)
    assert {array.dtype for array in found.values()} == {np.dtype(np.float32)}


@pytest.mark.parametrize(
    "task, head, pooler",
    (
        ("ner", "classifier", False),
        ("question_answering", "qa_outputs", False),
        ("multiple_choice", "classifier", True),
    ),
)
def test_names_of_other_heads(task, head, pooler, tmp_path):
    write_folder(tmp_path / "in", "albert", task)
    exported(tmp_path / "in", tmp_path / "out")
    names = weights(tmp_path / "out").keys()
    others = {name for name in names if not name.startswith("albert.")}
    assert others == {f"{head}.weight", f"{head}.bias"}
    assert ("albert.pooler.weight" in names) == pooler


def test_configuration(tmp_path):
    write_folder(tmp_path / "in", "albert", "classification", {"hidden_act": "gelu_erf"})
    config, _ = exported(tmp_path / "in", tmp_path / "out")
    assert config["hidden_act"] == "gelu" and config["model_type"] == "albert"
    assert config["architectures"] == ["AlbertForSequenceClassification"]
    assert config["id2label"] == {"0": "나쁨", "1": "보통", "2": "좋음"}
    assert config["label2id"] == {"나쁨": 0, "보통": 1, "좋음": 2}
    assert config["problem_type"] == "single_label_classification"
    special = [config[f"{name}_token_id"] for name in ("pad", "bos", "eos")]
    assert special == [0, 2, 3]
    assert (config["vocab_size"], config["embedding_size"]) == (60, 16)
    write_folder(tmp_path / "bert", "bert")
    config, _ = exported(tmp_path / "bert", tmp_path / "bert-out")
    assert config["hidden_act"] == "gelu_new" and "problem_type" not in config


def test_a_missing_sentence_head(tmp_path):
    """It is not written with random values: the class is one that has none."""
    write_folder(tmp_path / "in")
    drop_weights(tmp_path / "in" / "model.ckpt-3", "seq_relationship")
    config, _ = exported(tmp_path / "in", tmp_path / "out")
    assert config["architectures"] == ["BertForMaskedLM"]
    names = weights(tmp_path / "out")
    assert not any("seq_relationship" in name or "pooler" in name for name in names)


@pytest.mark.parametrize("settings, task, message", [
    ({"start_n_top": 5, "end_n_top": 5}, "question_answering", "head searches with beams"),
    ({"feature_layers": "-1,-2"}, "classification", "--feature_layers=-1,-2"),
])  # fmt: skip
def test_heads_that_transformers_lacks(settings, task, message, tmp_path):
    write_folder(tmp_path / "in", "albert", task, **settings)
    with pytest.raises(InputError, match=message):
        exported(tmp_path / "in", tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


def test_shards(tmp_path):
    write_folder(tmp_path / "in")
    exported(tmp_path / "in", tmp_path / "one")
    exported(tmp_path / "in", tmp_path / "out", max_shard_size=20_000)
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    files = {path.name: load_file(path) for path in (tmp_path / "out").glob("*.safetensors")}
    count = len(files)
    assert count > 3
    assert set(files) == {f"model-{i + 1:05d}-of-{count:05d}.safetensors" for i in range(count)}
    assert index["weight_map"] == {n: file for file, arrays in files.items() for n in arrays}
    merged = {n: array for arrays in files.values() for n, array in arrays.items()}
    whole = weights(tmp_path / "one")
    np.testing.assert_equal(merged, whole)
    assert index["metadata"]["total_size"] == sum(array.nbytes for array in whole.values())
    assert all(sum(a.nbytes for a in arrays.values()) <= 20_000 for arrays in files.values())


def test_division_into_shards():
    arrays = {name: np.zeros(size, np.int8) for name, size in (("a", 3), ("b", 3), ("c", 9))}
    assert [list(shard) for shard in split_into_shards(arrays, 6)] == [["a", "b"], ["c"]]
    assert [list(shard) for shard in split_into_shards(arrays, 5)] == [["a"], ["b"], ["c"]]
    assert len(split_into_shards(arrays, None)) == 1


def test_the_card_says_what_the_folder_records(tmp_path):
    folder = tmp_path / "in"
    write_folder(folder, task="classification")
    plain = card(folder, tmp_path / "1")
    assert plain.startswith("---\nlibrary_name: transformers\npipeline_tag: text-classification\n")
    assert "BertForSequenceClassification.from_pretrained" in plain
    assert "AutoTokenizer.from_pretrained(folder)\n```" in plain
    assert "| labels | 나쁨,보통,좋음 |" in plain and "| trained_positions | 16 |" in plain
    assert "| hidden_act | gelu_new |" in plain  # as config.json beside it, not our "gelu"
    assert "## Evaluation" not in plain and "## Corpus" not in plain and "None" not in plain
    # Results of another step are not this checkpoint's.
    results = "eval_accuracy = 0.875\nexamples = 40\nglobal_step = {}\n"
    (folder / "eval_results.txt").write_text(results.format(2))
    assert "## Evaluation" not in card(folder, tmp_path / "2")
    (folder / "eval_results.txt").write_text(results.format(3))
    shown = "## Evaluation\n\n| | |\n|---|---|\n| eval_accuracy | 0.8750 |"
    assert shown in card(folder, tmp_path / "3")


def test_a_text_for_the_card(tmp_path):
    """It takes the place of the title; the lines at its top join those of the card."""
    write_folder(tmp_path / "in")
    text = "---\nlicense: cc-by-sa-4.0\n---\n# 이름\n\nIntroduction.\n\n## Licence\n\nFree.\n"
    made = card(tmp_path / "in", tmp_path / "out", card_text=text)
    head = "library_name: transformers\npipeline_tag: fill-mask\nlicense: cc-by-sa-4.0"
    body = "# 이름\n\nIntroduction.\n\n## Licence\n\nFree.\n\n## With trans"
    assert made.startswith(f"---\n{head}\n---\n\n{body}")
    assert "# BERT" not in made and "## Network" in made
    again = "---\npipeline_tag: other\nlibrary_name: transformers\n---\n"  # no key is there twice
    made = card(tmp_path / "in", tmp_path / "again", card_text=f"{again}Text.")
    assert made.startswith(f"{again}\nText.")
    made = card(tmp_path / "in", tmp_path / "plain", card_text="Nothing but text.\n---\n")
    assert "---\n\nNothing but text.\n---\n\n## With transformers" in made


def test_another_folder_s_checkpoint_has_no_record_of_this_one(tmp_path):
    """As --init_checkpoint names it, of the same step: its training and results are its own."""
    for name, rate in (("one", 0.25), ("two", 0.5)):
        write_folder(tmp_path / name)
        stages = [{"program": "pre-training", "settings": {"learning_rate": rate}}]
        (tmp_path / name / "training.json").write_text(json.dumps(stages))
        (tmp_path / name / "eval_results.txt").write_text(f"loss = {rate}\nglobal_step = 3\n")
    (tmp_path / "out").mkdir()
    export(load_folder(str(tmp_path / "one"), f"{tmp_path}/two/model.ckpt-3"), tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text()
    assert "| learning_rate | 0.5 |" in text and "0.25" not in text
    assert "| loss | 0.5000 |" in text
    assert json.loads((tmp_path / "out" / "training.json").read_text()) == stages


def test_the_card_of_a_pre_trained_model(tmp_path):
    """Its stages, as the folder records them."""
    folder = tmp_path / "in"
    write_folder(folder, "albert")
    corpus = {"documents": 7, "text": "a|b\nc"}
    stages = [
        {"program": "pre-training", "corpus": corpus, "settings": {"learning_rate": 1e-4}},
        {"program": "pre-training", "corpus": {}, "settings": {"optimizer": "lamb", "x": None}},
    ]
    (folder / "training.json").write_text(json.dumps(stages))
    text = card(folder, tmp_path / "out")
    # The records go along.
    assert json.loads((tmp_path / "out" / "training.json").read_text()) == stages
    assert load_folder(str(tmp_path / "out")).trained_positions == 16
    assert "pipeline_tag: fill-mask" in text and "# ALBERT, pre-trained on masked words" in text
    corpus_table = "| | 1 | 2 |\n|---|---|---|\n| documents | 7 | |\n| text | a\\|b c | |\n"
    assert f"## Pre-training: corpus\n\n{corpus_table}" in text
    settings_table = "| learning_rate | 0.0001 | |\n| optimizer | | lamb |\n"
    assert f"## Pre-training: settings\n\n| | 1 | 2 |\n|---|---|---|\n{settings_table}" in text
    assert "| x |" not in text
    assert "| embedding_size | 16 |" in text and "## Task" not in text
