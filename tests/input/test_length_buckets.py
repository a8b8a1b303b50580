"""Batches by length: the same records in every window, shorter rows, the same mathematics."""

import numpy as np
import pytest

from bert_tf.input.batch_plan import BatchPlan
from bert_tf.input.length_buckets import BUCKET, WINDOW
from bert_tf.input.pipeline import training_dataset
from run_scripts.flags.parser import parse
from run_scripts.flags.pretrain import PretrainFlags, read_bucket_boundaries
from tests.support.crosses import slow
from tests.support.record_files import (
    DYNAMIC,
    FORMAT,
    PACKED,
    different_lengths,
    make_files,
)
from tests.support.refusals import refused
from tests.support.tiny_models import (
    ONE_LAYER,
    first_state,
    make_step,
    split_batch,
    strategy_of,
    tiny_model,
)
from tests.support.training_checks import CASES, assert_same_training

CONFIG = tiny_model().config
COUNTS, BATCH = (47, 60, 43), 4
BOUNDARIES = (6, 9, 12, 16)


def files_of_all_lengths(folder, record_format=FORMAT):
    """Records of 4 to 16 pieces; those without masks have such lengths anyway."""
    change = different_lengths if record_format is FORMAT else None
    return make_files(folder, COUNTS, record_format, change=change)


def dataset(files, boundaries=BOUNDARIES, record_format=FORMAT):
    return training_dataset(BatchPlan(files, record_format, CONFIG, BATCH, 1, boundaries))


def ids(batches):
    """Which records the batches hold: the first piece is a record's number modulo 60."""
    return [batch["input_ids"][:, 0].tolist() for batch in batches]


def bucket_of(batch):
    """The number of the batch's boundary, which every replica's part has."""
    assert len(set(np.atleast_1d(batch[BUCKET]))) == 1
    return int(np.atleast_1d(batch[BUCKET])[0])


def windows(batches):
    return [batches[i : i + WINDOW] for i in range(0, len(batches), WINDOW)]


def take(dataset, count):
    return list(dataset.take(count).as_numpy_iterator())


@pytest.mark.parametrize("record_format", (FORMAT, slow(DYNAMIC)), ids=("masked", "unmasked"))
def test_windows_share_their_records_out_by_length(tmp_path, record_format):
    files = files_of_all_lengths(tmp_path, record_format)
    found = take(dataset(files, record_format=record_format), 4 * WINDOW)
    plain = take(dataset(files, (), record_format=record_format), 4 * WINDOW)
    orders = []
    for ours, theirs in zip(windows(found), windows(plain), strict=True):
        assert ids(ours) != ids(theirs)
        assert sorted(sum(ids(ours), [])) == sorted(sum(ids(theirs), []))
        buckets = [bucket_of(batch) for batch in ours]
        for bucket, batch in zip(buckets, ours, strict=True):
            lengths = batch["input_mask"].sum(axis=1)
            fitting = [n for n, boundary in enumerate(BOUNDARIES) if lengths.max() <= boundary]
            assert bucket == fitting[0]
        assert buckets != sorted(buckets) and buckets != sorted(buckets)[::-1]
        orders.append(buckets)
        used = sum(BATCH * BOUNDARIES[bucket] for bucket in buckets)
        filled = sum(batch["input_mask"].sum() for batch in ours)
        assert filled / used > 0.75 > filled / (WINDOW * BATCH * 16)
    assert orders[0] != orders[1]


@pytest.mark.slow
@pytest.mark.parametrize("devices", (1, 2))
@pytest.mark.parametrize("kind, optimizer", CASES)  # the first under XLA
@pytest.mark.usefixtures("float64")
def test_cut_batches_train_the_same(tmp_path, devices, kind, optimizer):
    """After the boundary there is only padding, which has no effect."""
    batches = take(dataset(files_of_all_lengths(tmp_path)), 8)
    assert len({bucket_of(batch) for batch in batches}) > 2
    results = []
    for boundaries in ((), BOUNDARIES):
        # Uncut on one device, which trains the same as two and is traced once.
        count = devices if boundaries else 1
        strategy = strategy_of(count)
        options = {"bucket_boundaries": boundaries, "xla": count == devices == 1}
        step = make_step(kind, optimizer, strategy=strategy, sizes=ONE_LAYER, **options)
        numbers, positions = [], []
        for batch in batches:
            batch, bucket = dict(batch), batch[BUCKET]
            del batch[BUCKET]
            if boundaries:
                batch[BUCKET] = np.repeat(bucket, count)
            parts = split_batch(batch, strategy)
            if boundaries:
                parts = {**parts, BUCKET: first_of(parts[BUCKET], strategy)}
            metrics = step(parts)
            numbers.append([float(metrics["loss"]), float(metrics["gradient_norm"])])
            positions.append(int(metrics["positions"]))
        state = first_state(step)
        results.append((np.array(numbers), state))
        longest = [BOUNDARIES[bucket_of(b)] if boundaries else 16 for b in batches]
        assert positions == [BATCH * length for length in longest]
    assert_same_training(results[1], results[0])


def first_of(numbers, strategy):
    """A number for each replica: what stood in a vector with one for each."""
    local = strategy.experimental_local_results(numbers)
    return strategy.experimental_distribute_values_from_function(
        lambda context: local[context.replica_id_in_sync_group][0]
    )


def parsed(given):
    """The value of the flag."""
    argv = ["p", "--input_file=x", "--output_dir=y", f"--bucket_boundaries={given}"]
    return parse(PretrainFlags, argv).bucket_boundaries


@pytest.mark.parametrize("given", ("12,6", "0,8", "8,16", "8,8", "8,x", "-1"))
def test_boundaries_must_be_ascending_lengths(given):
    with refused(given):
        read_bucket_boundaries(parsed(given), FORMAT)


def test_boundaries_of_packed_rows_mean_nothing():
    given = parsed("6, 9,12")
    assert read_bucket_boundaries(given, FORMAT) == BOUNDARIES
    with refused("not packed"):
        read_bucket_boundaries(given, PACKED)
    assert read_bucket_boundaries(None, PACKED) == ()
