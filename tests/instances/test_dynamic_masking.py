"""Dynamic masks: distributed as static ones, different in every epoch, resumable."""

import dataclasses
import json
import os

import numpy as np
import pytest

from bert_tf.input.batch_plan import BatchPlan
from bert_tf.input.pipeline import evaluation_dataset, training_dataset
from bert_tf.input.record_checks import check_records
from bert_tf.training.evaluation import first_records
from create_pretraining_data.instances.counter_based_random import derive_keys
from create_pretraining_data.instances.dynamic_masking import mask_records
from run_scripts.create_data import main
from tests.support.record_files import (
    DYNAMIC,
    DYNAMIC_FORMATS,
    FORMAT,
    assert_same_batches,
    global_batches,
    make_files,
)
from tests.support.refusals import refused
from tests.support.sequences import (
    Syllables,
    all_records,
    parsed,
    settings_for,
    stored_sequences,
    syllable_documents,
)
from tests.support.tiny_models import tiny_model
from tests.support.vocabularies import SPECIAL, write_pieces

CONFIG = tiny_model().config
COUNTS = (7, 20, 13)


@pytest.mark.parametrize("objective", ("nsp", "none"))
@pytest.mark.parametrize("packed", (False, True))
def test_without_masks_the_text_comes_back(objective, packed):
    """The sequences are those of static records; only their masks are still to be drawn."""

    def make(dynamic, **rules):
        settings = settings_for(objective, packed, dynamic, **rules)
        records, _ = all_records(syllable_documents(), Syllables(), settings)
        return parsed(records, settings.record_format), settings.record_format

    stored, record_format = make(True)
    keys = derive_keys(np.uint64(1), np.arange(len(stored["input_ids"])))
    masked = mask_records(stored, record_format, keys)
    restored = {name: values.copy() for name, values in masked.items()}
    rows, places = np.nonzero(masked["masked_lm_weights"])
    at = rows, masked["masked_lm_positions"][rows, places]
    restored["input_ids"][at] = masked["masked_lm_ids"][rows, places]
    assert (restored["input_ids"] == stored["input_ids"]).all()
    changed = (masked["input_ids"] != stored["input_ids"]).sum()
    assert 0.7 * len(rows) < changed < len(rows)
    # As static records of the same pass, but for the masks.
    static, _ = make(False, masked_lm_prob=0.0)
    restored |= {"masked_lm_weights": restored["masked_lm_weights"] * 0}
    assert {s[:2] + s[5:] for s in stored_sequences(restored)} == {
        s[:2] + s[5:] for s in stored_sequences(static)
    }


def dataset(files, record_format, seed=1):
    return training_dataset(BatchPlan(files, record_format, CONFIG, 4, seed))


@DYNAMIC_FORMATS
def test_every_epoch_has_other_masks(tmp_path, record_format):
    files = make_files(tmp_path, COUNTS, record_format)
    batches = global_batches([dataset(files, record_format)], 1, 20)
    rows = {}  # by the record, the masks of each epoch
    for batch in batches:
        for number, labels in zip(batch["input_ids"], batch["masked_lm_positions"], strict=True):
            rows.setdefault(int(number[0]), []).append(labels.tolist())
    different = [first != second for first, second in rows.values()]
    assert len(different) == 40 and np.mean(different) > 0.4
    other = global_batches([dataset(files, record_format, seed=2)], 1, 1)[0]
    assert other["input_ids"].tolist() != batches[0]["input_ids"].tolist()


@DYNAMIC_FORMATS
def test_held_out_masks_are_the_same_each_time(tmp_path, record_format):
    files = make_files(tmp_path, (5, 5), record_format)
    batches = list(evaluation_dataset(files, record_format, CONFIG, 4, 100).as_numpy_iterator())
    again = list(evaluation_dataset(files, record_format, CONFIG, 4, 100).as_numpy_iterator())
    assert_same_batches(batches, again)
    last = batches[-1]  # filled up with what counts for nothing
    assert last["masked_lm_weights"][:2].any(axis=1).all()
    for name, values in last.items():
        assert not values[2:].any(), name
    shown = first_records(files, record_format, CONFIG, 3)
    for row, record in enumerate(shown):
        np.testing.assert_array_equal(record["masked_lm_ids"], batches[0]["masked_lm_ids"][row])


def test_the_program_and_the_checks(tmp_path):
    path = write_pieces(tmp_path, [*"가나다라마", *(f"##{c}" for c in "가나다라마")])
    (tmp_path / "text.txt").write_text("가나 다라 마가\n나다 라마\n다가나 라\n\n" * 30)
    flags = [
        f"--input_file={tmp_path}/text.txt", f"--vocab_file={path}", "--tokenizer=korean",
        "--max_seq_length=16", "--max_predictions_per_seq=4", "--num_workers=1",
    ]  # fmt: skip
    dynamic, static = (str(tmp_path / f"{name}.tfrecord") for name in ("dynamic", "static"))
    assert main(["program", *flags, "--masking=dynamic", f"--output_file={dynamic}"]) == 0
    config = dataclasses.replace(CONFIG, vocab_size=len(SPECIAL) + 10)
    record_format, examples = check_records([dynamic], 16, 4, config)
    assert record_format.masking.mask_id == SPECIAL.index("[MASK]")
    description = json.loads((tmp_path / "dynamic.json").read_text())
    assert description["settings"]["--dupe_factor"] == 1 and description["examples"] == examples
    batch = next(iter(training_dataset(BatchPlan([dynamic], record_format, config, 8, 1))))
    assert (batch["masked_lm_weights"].numpy().sum(axis=1) >= 1).all()

    with refused("vocab_size"):
        check_records([dynamic], 16, 4, dataclasses.replace(config, vocab_size=14))
    assert main(["program", *flags, "--dupe_factor=5", f"--output_file={static}"]) == 0
    with refused("masked by the same rules"):
        check_records([dynamic, static], 16, 4, config)
    assert os.path.getsize(dynamic) <= os.path.getsize(static) / 5
    (tmp_path / "dynamic.json").unlink()
    with refused("JSON file has the rules for masking", "dynamic.json"):
        check_records([dynamic], 16, 4, config)


@pytest.mark.parametrize(
    "change",
    (
        lambda description: description.pop("record_format"),
        lambda description: description["record_format"].update(masking=None),
        lambda description: description["record_format"].update(max_predictions_per_seq=3),
        lambda description: description["record_format"].update(newer=1),
        lambda description: description["record_format"]["masking"].pop("mask_id"),
        lambda description: description["record_format"]["masking"].update(newer=1),
    ),
)
def test_a_json_file_that_was_changed_is_one_line(tmp_path, change):
    files = make_files(tmp_path, (3,), DYNAMIC)
    path = tmp_path / "part-0.json"
    description = json.loads(path.read_text())
    change(description)
    path.write_text(json.dumps(description))
    with refused("must have the rules for masking", path):
        check_records(files, 16, 4, CONFIG)


def test_formats_with_and_without_masks():
    assert DYNAMIC.with_masks() == FORMAT
    assert "masked_lm_ids" not in DYNAMIC.features()
