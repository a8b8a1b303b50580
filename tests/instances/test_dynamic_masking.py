"""Dynamic masks: distributed as static ones, different in every epoch, resumable."""

import dataclasses
import json

import numpy as np
import pytest

from bert_common.errors import InputError
from bert_tf.input.batch_plan import BatchPlan
from bert_tf.input.pipeline import evaluation_dataset, training_dataset
from bert_tf.input.record_checks import check_records
from bert_tf.training.evaluation import first_records
from create_pretraining_data.instances.counter_based_random import derive_keys
from create_pretraining_data.instances.dynamic_masking import mask_records
from create_pretraining_data.instances.make_instances import InstanceSettings
from create_pretraining_data.instances.packing import MAX_SEQUENCES
from create_pretraining_data.instances.pairs import PairRules
from create_pretraining_data.records.record_format import MaskingRules, RecordFormat
from run_scripts.create_data import main
from tests.support.crosses import slow
from tests.support.record_files import (
    DYNAMIC,
    DYNAMIC_FORMATS,
    FORMAT,
    LAYOUTS,
    QUICK_IF_PACKED,
    RULES,
    assert_same_batches,
    global_batches,
    make_files,
    workers,
)
from tests.support.sequences import (
    LENGTH,
    PLACES,
    Syllables,
    all_records,
    parsed,
    stored_sequences,
    syllable_documents,
)
from tests.support.tiny_models import tiny_model

CONFIG = tiny_model().config
COUNTS = (7, 20, 13)


def stored_records(objective, packed, masking):
    """All records of a pass without masks, as arrays, with their format."""
    record_format = RecordFormat(LENGTH, PLACES, objective != "none", False, packed, masking)
    pair_rules = PairRules(objective, LENGTH, 0.1, 1, 2)
    settings = InstanceSettings(pair_rules, masking, record_format, dupe_factor=1)
    records, _ = all_records(syllable_documents(), Syllables(), settings)
    return parsed(records, record_format), record_format


@pytest.mark.parametrize("objective", ("nsp", "none"))
@pytest.mark.parametrize("packed", (0, MAX_SEQUENCES))
def test_without_masks_the_text_comes_back(objective, packed):
    """The sequences are those of static records; only their masks are still to be drawn."""
    rules = MaskingRules(0.15, PLACES, True, 3, True, False, 3, Syllables.vocab_size)
    stored, record_format = stored_records(objective, packed, rules)
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
    pair_rules = PairRules(objective, LENGTH, 0.1, 1, 2)
    none = dataclasses.replace(rules, masked_lm_prob=0.0)
    settings = InstanceSettings(pair_rules, none, record_format.with_masks(), dupe_factor=1)
    made, _ = all_records(syllable_documents(), Syllables(), settings)
    static = parsed(made, settings.record_format)
    restored |= {"masked_lm_weights": restored["masked_lm_weights"] * 0}
    assert {s[:2] + s[5:] for s in stored_sequences(restored)} == {
        s[:2] + s[5:] for s in stored_sequences(static)
    }


def plan_of(files, record_format, seed=1):
    return BatchPlan(files, record_format, CONFIG, 4, seed)


def dataset(files, record_format, seed=1, start_step=0, shard=None):
    return training_dataset(plan_of(files, record_format, seed), start_step, shard)


@QUICK_IF_PACKED
@pytest.mark.parametrize("count, replicas", LAYOUTS)
@pytest.mark.parametrize("start_step", (slow(0), 13))
def test_workers_draw_the_same_masks(tmp_path, record_format, count, replicas, start_step):
    files = make_files(tmp_path, COUNTS, record_format)
    whole = dataset(files, record_format)
    expected = global_batches([whole], 1, start_step + 6)[start_step:]
    datasets = [
        dataset(files, record_format, start_step=start_step, shard=shard)
        for shard in workers(count, replicas)
    ]
    for each in datasets:
        assert {spec.shape[0] for spec in each.element_spec.values()} == {4 // replicas}
    assert_same_batches(global_batches(datasets, replicas // count, 6), expected)


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


def test_the_rules_hold(tmp_path):
    files = make_files(tmp_path, COUNTS, DYNAMIC)
    for batch in global_batches([dataset(files, DYNAMIC)], 1, 10):
        lengths = batch["input_mask"].sum(axis=1)
        wanted = np.clip(np.rint(lengths * RULES.masked_lm_prob), 1, 4)
        assert (batch["masked_lm_weights"].sum(axis=1) <= wanted).all()
        assert (batch["masked_lm_positions"] < lengths[:, None]).all()
        assert (batch["next_sentence_weights"] == 1).all()


def test_a_step_of_unmasked_records_is_known(tmp_path):
    files = make_files(tmp_path, COUNTS, DYNAMIC)
    found = plan_of(files, DYNAMIC).names(3)
    first = dict(zip(files, np.cumsum((0, *COUNTS)), strict=False))
    batch = next(iter(dataset(files, DYNAMIC, start_step=3)))
    ids = batch["input_ids"][:, 0].numpy().tolist()
    assert [first[path] + number - 1 for path, number in found] == ids


def test_the_program_and_the_checks(tmp_path):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces = [*special, *"가나다라마", *(f"##{c}" for c in "가나다라마")]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    (tmp_path / "text.txt").write_text("가나 다라 마가\n나다 라마\n다가나 라\n\n" * 30)
    flags = [
        f"--input_file={tmp_path}/text.txt", f"--vocab_file={tmp_path}/vocab.txt",
        "--tokenizer=korean", "--max_seq_length=16", "--max_predictions_per_seq=4",
        "--num_workers=1",
    ]  # fmt: skip
    path = str(tmp_path / "dynamic.tfrecord")
    assert main(["program", *flags, "--masking=dynamic", f"--output_file={path}"]) == 0
    config = dataclasses.replace(CONFIG, vocab_size=len(pieces))
    record_format, examples = check_records([path], 16, 4, config)
    assert record_format.masking.mask_id == special.index("[MASK]")
    description = json.loads((tmp_path / "dynamic.json").read_text())
    assert description["settings"]["--dupe_factor"] == 1 and description["examples"] == examples
    batch = next(iter(training_dataset(BatchPlan([path], record_format, config, 8, 1))))
    assert (batch["masked_lm_weights"].numpy().sum(axis=1) >= 1).all()

    with pytest.raises(InputError, match="vocab_size"):
        check_records([path], 16, 4, dataclasses.replace(config, vocab_size=len(pieces) - 1))
    static = str(tmp_path / "static.tfrecord")
    assert main(["program", *flags, "--dupe_factor=5", f"--output_file={static}"]) == 0
    with pytest.raises(InputError, match="masked by the same rules"):
        check_records([path, static], 16, 4, config)
    sizes = [len((tmp_path / f"{name}.tfrecord").read_bytes()) for name in ("dynamic", "static")]
    assert sizes[0] <= sizes[1] / 5
    (tmp_path / "dynamic.json").unlink()
    with pytest.raises(InputError, match="JSON file has the rules for masking") as error:
        check_records([path], 16, 4, config)
    assert "dynamic.json" in str(error.value)


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
    with pytest.raises(InputError, match="must have the rules for masking") as error:
        check_records(files, 16, 4, CONFIG)
    assert str(path) in str(error.value)


def test_formats_with_and_without_masks():
    assert DYNAMIC.with_masks() == FORMAT
    assert "masked_lm_ids" not in DYNAMIC.features()
