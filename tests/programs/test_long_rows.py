"""Rows of more pieces than one block of queries, with either way of attention, in the programs."""

import dataclasses
import json
import re

import numpy as np
import pytest
import tensorflow as tf

from run_scripts import create_data, pretrain
from tests.support.paths import ROOT, TEST_DATA
from tests.support.programs import NO_DROPOUT, ClassifierJob, PretrainingJob, arrays, results
from tests.support.record_files import PACKED
from tests.support.task_data import read_table
from tests.support.tiny_models import assert_close, write_config

LINE = "attention is computed for one block of queries at a time"


@pytest.mark.slow
def test_pretraining_on_packed_rows_gives_the_same_weights(tmp_path, prints):
    record_format = dataclasses.replace(PACKED, max_seq_length=160)
    job = PretrainingJob(tmp_path, record_format, **NO_DROPOUT, max_position_embeddings=160)
    flags, ended = {"max_seq_length": 160, "learning_rate": 1e-3}, {}
    for attention in ("full", "blockwise"):
        output = tmp_path / attention
        shown = prints(job.run, **flags, output_dir=output, attention=attention)
        assert (LINE in shown) == (attention == "blockwise")
        ended[attention] = arrays(output, 6)
    assert_close(ended["blockwise"], ended["full"], 1e-5, floor=1)


def predictions(job):
    """The probabilities that run_classifier wrote, [examples, labels]."""
    header, *rows = read_table(job.output / "predictions_test.tsv")
    columns = [header.index(label) for label in ("bad", "good")]
    return np.array([[float(row[column]) for column in columns] for row in rows])


def test_fine_tuning_prediction_export(tmp_path, prints):
    job = ClassifierJob(tmp_path, max_position_embeddings=160).with_sentences(16, test=8)
    flags = {"max_seq_length": 160, "attention": "blockwise"}
    assert LINE in prints(job.run, **flags, train_step=2, do_predict=True)
    found = predictions(job)
    assert job.again(do_predict=True, attention="full") == 0
    np.testing.assert_allclose(found, predictions(job), atol=1e-6)
    assert job.again(export_dir=tmp_path / "served", attention="blockwise") == 0
    (folder,) = (tmp_path / "served").iterdir()
    serve = tf.saved_model.load(str(folder)).signatures["serving_default"]
    rows = np.array([[5, *[6] * 139, *[0] * 20]])
    features = {"input_ids": rows, "input_mask": rows > 0, "segment_ids": 0 * rows}
    example = tf.train.Example()
    for name, values in features.items():
        example.features.feature[name].int64_list.value.extend(map(int, values[0]))
    outputs = serve(input=tf.constant([example.SerializeToString()]))
    assert float(tf.reduce_sum(outputs["probabilities"])) == pytest.approx(1, abs=1e-6)


@pytest.mark.slow
def test_rows_of_2048_from_text_to_a_model(tmp_path, capsys):
    """Positions that no published BERT has; `auto` chooses blocks without being asked."""
    text = (ROOT / "sample_corpus" / "train.txt").read_text(encoding="utf-8")
    (tmp_path / "text.txt").write_text(re.sub(r"\n\n+", "\n", text), encoding="utf-8")
    records = tmp_path / "train.tfrecord"
    shared = ["--max_seq_length=2048", "--max_predictions_per_seq=308"]
    created = create_data.main([
        "create_pretraining_data.py", f"--input_file={tmp_path}/text.txt",
        f"--output_file={records}", f"--tokenizer_dir={TEST_DATA}/sample_tokenizer",
        "--objective=nsp", "--dupe_factor=2", *shared,
    ])  # fmt: skip
    assert created == 0
    config = write_config(tmp_path / "bert.json", max_position_embeddings=2048, vocab_size=3000)
    trained = pretrain.main([
        "run_pretraining.py", f"--input_file={records}", f"--output_dir={tmp_path}/model",
        f"--bert_config_file={config}", "--do_train", "--do_eval", "--train_batch_size=2",
        "--eval_batch_size=2", "--num_train_steps=3", "--num_warmup_steps=1", *shared,
    ])  # fmt: skip
    out = capsys.readouterr().out
    assert trained == 0 and LINE in out and " at 2 x 2048 " in out
    assert np.isfinite(results(tmp_path / "model")["loss"])
    found = json.loads((tmp_path / "model" / "pretraining.json").read_text())
    assert found["trained_positions"] > 1500
