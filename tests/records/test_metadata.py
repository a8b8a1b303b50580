"""run_pretraining reads the format of records from the JSON file beside them; gzip too."""

import gzip
import json
import shutil
import time
import warnings

import numpy as np
import pytest

from bert_tf.config import BertConfig
from bert_tf.input.batch_plan import BatchPlan
from bert_tf.input.pipeline import evaluation_dataset, training_dataset
from bert_tf.input.record_checks import check_records, explain_failure
from create_pretraining_data.records.metadata import (
    KIND,
    are_up_to_date,
    described_records,
    tokenizer_beside,
)
from create_pretraining_data.records.reader import count_records
from run_scripts.create_data import main
from run_scripts.flags.record_files import RecordFiles
from tests.support.programs import PretrainingJob, one_line, results
from tests.support.refusals import refused
from tests.support.vocabularies import SPECIAL, write_tokenizer
from tokenization import load_tokenizer


def copy_plain(made, folder):
    """Copies the plain records with their description, without their tokenizer."""
    folder.mkdir(exist_ok=True)
    for path in (*made.glob("plain-*"), made / "plain.json"):
        shutil.copy(path, folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with records that create_pretraining_data made, and with their tokenizer."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "text.txt").write_text("가 나 다\n라 마 바\n사 아\n\n" * 40)
    write_tokenizer(folder / "tokenizer", [*SPECIAL, *"가나다라마바사아"])
    write_tokenizer(folder / "other", [*SPECIAL, *"가나다라마바아사"])
    for name, changes in {
        "plain": {},
        "packed": {"compression": "GZIP"},
        "shorter": {"max_seq_length": 10, "max_predictions_per_seq": 2},
        "foreign": {"tokenizer_dir": folder / "other"},
    }.items():
        flags = {
            "input_file": folder / "text.txt", "output_file": f"{folder}/{name}.tfrecord@2",
            "tokenizer_dir": folder / "tokenizer", "max_seq_length": 14,
            "max_predictions_per_seq": 3, "dupe_factor": 1, **changes,
        }  # fmt: skip
        assert main(["create", *(f"--{key}={value}" for key, value in flags.items())]) == 0
    return folder


# Flags of the records that are left to the JSON file.
UNSAID = {"max_seq_length": None, "max_predictions_per_seq": None, "num_train_steps": 2}


def test_the_tokenizer_beside_records_is_theirs(made, tmp_path, capsys):
    """Moved with the records it is found; another one in its place is refused."""
    records = tmp_path / "records"
    copy_plain(made, records)
    job = PretrainingJob(tmp_path)
    files = [str(path) for path in records.glob("*.tfrecord")]
    assert tokenizer_beside(files[0]) is None
    shutil.copytree(made / "foreign.tokenizer", records / "plain.tokenizer")
    assert tokenizer_beside(files[0]) == str(records / "plain.tokenizer")
    assert job.run(input_file=records / "plain-*", **UNSAID) == 1
    assert "plain.tokenizer must be what the records were made with" in one_line(capsys)
    shutil.copytree(made / "tokenizer", records / "plain.tokenizer", dirs_exist_ok=True)
    found, _ = RecordFiles.of(f"{records}/plain-*", "input_file").open_tokenizer()
    assert found.fingerprint() == load_tokenizer(made / "tokenizer").fingerprint()


@pytest.mark.parametrize("name", ("ko", "ko.tokenizer"))
def test_a_file_in_the_place_of_the_tokenizer(made, tmp_path, capsys, name):
    (tmp_path / "ko.tokenizer").write_text("mine")
    flags = (f"--input_file={made}/text.txt", f"--tokenizer_dir={made}/tokenizer")
    assert main(["create", *flags, f"--output_file={tmp_path}/{name}"]) == 1
    assert f"{tmp_path}/ko.tokenizer, which is a file" in one_line(capsys)
    assert (tmp_path / "ko.tokenizer").read_text() == "mine"


def test_a_missing_file_of_records_is_named(made, tmp_path):
    copy_plain(made, tmp_path)
    with warnings.catch_warnings(action="error"):
        RecordFiles.of(f"{tmp_path}/plain-00000-*", "input_file")  # the other one is left out
    (tmp_path / "plain-00001-of-00002.tfrecord").unlink()
    words = "missing of the 2 files that .*plain.json describes: plain-00001-of-00002.tfrecord"
    with pytest.warns(UserWarning, match=words):
        RecordFiles.of(f"{tmp_path}/plain-*.tfrecord", "input_file")


def test_no_file_is_missing_that_was_written_into_another_folder(made, tmp_path):
    output = f"{tmp_path}/a/x.tfrecord@2,{tmp_path}/b/y.tfrecord"
    files = [f"--input_file={made}/text.txt", f"--output_file={output}"]
    flags = ["--max_seq_length=14", "--max_predictions_per_seq=3", "--dupe_factor=1"]
    assert main(["create", *files, f"--tokenizer_dir={made}/tokenizer", *flags]) == 0
    records = f"{tmp_path}/a/*.tfrecord,{tmp_path}/b/*.tfrecord"
    with warnings.catch_warnings(action="error"):
        RecordFiles.of(records, "input_file")
    (tmp_path / "a/x-00000-of-00002.tfrecord").unlink()
    with pytest.warns(UserWarning, match="missing of the 2 files that .*x.json describes: x-00000"):
        RecordFiles.of(records, "input_file")


def test_thousands_of_files_are_described_in_little_time(tmp_path):
    names = [f"s-{n:05d}-of-04000.tfrecord" for n in range(4000)]
    for name in names:
        (tmp_path / name).touch()
    shards = [{"file": name, "size": 0, "records": 1} for name in names]
    (tmp_path / "s.json").write_text(json.dumps({"kind": KIND, "shards": shards}))
    start = time.process_time()
    paths = RecordFiles.of(f"{tmp_path}/s-*", "input_file").paths
    assert set(map(described_records, paths)) == {1}
    assert time.process_time() - start < 2  # a search for each took over 4


def test_records_of_an_earlier_run_are_not_read_unnoticed(tmp_path):
    for name in ("s-00000-of-00002", "s-00001-of-00002", "s-00000-of-00003", "t-00000-of-00003"):
        (tmp_path / f"{name}.tfrecord").write_text("")
    with warnings.catch_warnings(action="error"):
        RecordFiles.of(f"{tmp_path}/*-of-00003.tfrecord", "input_file")
    words = "read together, .*: .*/s.tfrecord@2, [^,]*/s.tfrecord@3$"
    with pytest.warns(UserWarning, match=words):
        RecordFiles.of(f"{tmp_path}/*.tfrecord", "input_file")


def test_lengths_and_tokenizer_need_not_be_given(made, tmp_path, capsys):
    """Held-out records have their own lengths."""
    job = PretrainingJob(tmp_path)
    held_out = made / "shorter-*"
    flags = {**UNSAID, "input_file": made / "plain-*", "eval_input_file": held_out}
    assert job.run(**flags, do_eval=True) == 0
    assert "note: no tokenizer" not in capsys.readouterr().out
    saved, own = load_tokenizer(job.output), load_tokenizer(made / "tokenizer")
    assert saved.fingerprint() == own.fingerprint()
    files = map(str, made.glob("shorter-*.tfrecord"))
    assert results(job.output)["examples"] == sum(map(count_records, files))


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        ({"tokenizer_dir": "other"}, ["--tokenizer_dir must be what the", "fingerprint", ".json"]),
        ({"vocab_file": "other/vocab.txt"}, ["--vocab_file must be what the", "vocabulary_sha256"]),
        ({"max_seq_length": 128}, ["--max_seq_length=128", "has 14"]),
        ({"eval_input_file": "foreign-*"}, ["with one tokenizer", "plain-00000", "foreign-00000"]),
    ],
)
def test_what_contradicts_the_records_is_one_line(made, tmp_path, capsys, flags, parts):
    flags = {k: made / v if isinstance(v, str) else v for k, v in flags.items()}
    assert PretrainingJob(tmp_path).run(**{**UNSAID, "input_file": made / "plain-*", **flags}) == 1
    line = one_line(capsys)
    assert all(part in line for part in parts), line


def test_a_json_file_of_other_records_says_nothing(tmp_path, capsys):
    job = PretrainingJob(tmp_path)  # part-0.tfrecord of length 16
    edited = ({"kind": KIND, "shards": shards} for shards in ([], [{}], 3))
    for content in ("", "[]", '{"a": 1}', json.dumps({"kind": KIND}), *map(json.dumps, edited)):
        (tmp_path / "part-0.json").write_text(content)
        assert job.run(max_seq_length=None) == 1
        assert "--max_seq_length=128" in one_line(capsys)


@pytest.mark.parametrize("missing", ("record_format", "tokenizer", "settings"))
def test_what_the_json_file_does_not_say_is_not_known(made, tmp_path, capsys, missing):
    copy_plain(made, tmp_path)
    description = json.loads((tmp_path / "plain.json").read_text())
    del description[missing]
    (tmp_path / "plain.json").write_text(json.dumps(description))
    records = tmp_path / "plain-*.tfrecord"
    flags = {**UNSAID, "vocab_file": made / "tokenizer/vocab.txt", "max_predictions_per_seq": 4}
    assert PretrainingJob(tmp_path).run(input_file=records, **flags) == 1
    line = one_line(capsys)
    assert ("has 14" if missing == "record_format" else "has 3") in line, line
    settings, path = description.get("settings", {}), tmp_path / "plain-00000-of-00002.tfrecord"
    assert are_up_to_date([str(path)], settings) == bool(settings)


def test_compressed_records_are_read(made):
    config = BertConfig(vocab_size=20)
    batches = {}
    for name in ("plain", "packed"):
        files = sorted(str(path) for path in made.glob(f"{name}-*"))
        record_format, examples = check_records(files, 14, 3, config)
        assert examples == sum(map(count_records, files))
        assert explain_failure(files, record_format, config) is None
        data = (
            training_dataset(BatchPlan(files, record_format, config, 4, 1)).take(3),
            evaluation_dataset(files, record_format, config, 4, 3),
        )
        batches[name] = [b for part in data for b in part.as_numpy_iterator()]
    for plain, packed in zip(*batches.values(), strict=True):
        for name in plain:
            np.testing.assert_array_equal(plain[name], packed[name])


def test_damaged_compressed_records_are_named(made, tmp_path):
    whole = (made / "packed-00000-of-00002.tfrecord").read_bytes()
    path = tmp_path / "a.tfrecord"
    for damaged in (whole[:-9], gzip.compress(gzip.decompress(whole)[:-3])):
        path.write_bytes(damaged)
        with refused(f"{path} must be a complete TFRecord file"):
            count_records(str(path))


def test_plain_and_compressed_do_not_mix(made):
    files = [str(made / f"{name}-00000-of-00002.tfrecord") for name in ("plain", "packed")]
    with refused("all files must be compressed, or none"):
        check_records(files, 14, 3, BertConfig(vocab_size=20))
