"""The number of trained positions is kept with a model; using more causes a warning."""

import dataclasses
import json

import pytest

from bert_common.errors import InputError
from bert_tf.input.record_checks import longest_sequence
from model_formats.model_folder import ModelFolder, add_trained_positions
from run_scripts import classifier, extract_features
from tests.support.programs import NO_DROPOUT, PretrainingJob, spoken_lines
from tests.support.record_files import DYNAMIC, FORMAT, PACKED, PACKED_DYNAMIC, make_files
from tests.support.task_data import write_splits
from tests.support.tiny_models import without_graphs
from tests.support.vocabularies import SPECIAL, write_tokenizer

WORDS = [f"word{i}" for i in range(5, 60)]


def noted(folder):
    """The number in a folder; None without one."""
    path = folder / "pretraining.json"
    return json.loads(path.read_text())["trained_positions"] if path.exists() else None


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """A model with 32 positions that was pre-trained on 16 pieces, and its export."""
    job = PretrainingJob(tmp_path_factory.mktemp("job"), **NO_DROPOUT)
    write_tokenizer(job.folder, [*SPECIAL, *WORDS], "full")
    flags = {"tokenizer_dir": job.folder, "export_dir": job.folder / "export"}
    with without_graphs():
        assert job.run(num_train_steps=1, **flags) == 0
    assert noted(job.output) == noted(job.folder / "export") == FORMAT.max_seq_length == 16
    return job


@pytest.mark.parametrize("length, is_said", ((16, False), (17, True)))
def test_features(job, capsys, length, is_said):
    """The longest line counts, not what --max_seq_length would allow."""
    line = " ".join(WORDS[: length - 2])  # beside [CLS] and [SEP]
    (job.folder / "lines.txt").write_text(f"word5\n{line}\n")
    argv = [f"--input_file={job.folder}/lines.txt", f"--output_file={job.folder}/out.npz"]
    argv += [f"--model_dir={job.folder}/export", "--max_seq_length=32", "--layers=-1"]
    capsys.readouterr()
    assert extract_features.main(["extract_features", *argv]) == 0
    found = spoken_lines(capsys.readouterr().err)
    said = f"warning: the longest line has 17 tokens, but {job.folder}/export/model.ckpt was"
    assert [line.startswith(said) for line in found] == [True] * is_said


@pytest.mark.usefixtures("eagerly")
def test_fine_tuning(job, capsys):
    """It warns once, and what it trained itself counts from then on."""
    rows = [(" ".join(WORDS[i : i + 22 - i % 2]), i % 2) for i in range(8)]
    data = write_splits(job.folder / "data", ("text", "label"), rows, train=(0, 4), dev=(4, 8))
    output = job.folder / "fine-tuned"
    flags = [f"--output_dir={output}", f"--data_dir={data}", "--xla=off", "--max_seq_length=32"]
    train = [f"--model_dir={job.output}", "--task_name=tsv", "--do_train", "--train_step=1"]
    capsys.readouterr()
    assert classifier.main(["run", *flags, *train, "--train_batch_size=4"]) == 0
    (line,) = spoken_lines(capsys.readouterr().err)
    assert line.startswith("warning: the longest example has 24 tokens, but ")
    assert noted(output) == 24
    assert classifier.main(["run", *flags, "--do_eval"]) == 0
    lines = spoken_lines(capsys.readouterr().err)
    assert all("no better than" in line for line in lines)


def test_a_second_phase(job, tmp_path, capsys):
    """Longer sequences raise the number, shorter ones do not lower it."""
    start = str(job.output / "model.ckpt-1")
    assert add_trained_positions(None, 8) == 8
    assert add_trained_positions(start, 8) == 16
    assert add_trained_positions(start, 512) == 512
    # The best checkpoint is in a subfolder; of a released one nothing is known.
    assert ModelFolder.beside(str(job.output / "best" / "model.ckpt-1")).trained_positions == 16
    assert add_trained_positions(str(tmp_path / "bert_model.ckpt"), 128) is None
    # Evaluating with longer records trains nothing.
    (tmp_path / "long").mkdir()
    (longer,) = make_files(tmp_path / "long", (20,), PACKED_DYNAMIC)
    flags = {"input_file": longer, "max_seq_length": None, "max_predictions_per_seq": None}
    assert job.run(**flags, do_train=False, do_eval=True) == 0
    assert noted(job.output) == 16


@pytest.mark.parametrize(("length", "warnings"), ((16, 0), (24, 1)))
def test_an_evaluation_with_longer_records(job, tmp_path, capsys, length, warnings):
    (records,) = make_files(tmp_path, (4,), dataclasses.replace(FORMAT, max_seq_length=length))
    capsys.readouterr()
    flags = {"input_file": records, "max_seq_length": length}
    assert job.run(**flags, do_train=False, do_eval=True) == 0
    said = f"warning: the longest record has {length} tokens, but {job.output / 'model.ckpt-1'} was"
    lines = spoken_lines(capsys.readouterr().err)
    assert [line.startswith(said) for line in lines if "untrained" in line] == [True] * warnings


def test_what_is_noted_goes_with_its_model(job, tmp_path):
    """The folder of another model, of which nothing is known, has no number."""
    from bert_tf import BertConfig

    config = BertConfig.from_json_file(job.output / "bert_config.json")
    ModelFolder.write(tmp_path, "bert", config, tokenizer=None, positions=128)
    assert noted(tmp_path) == 128
    ModelFolder.write(tmp_path, "bert", config, tokenizer=None, positions=None)
    assert noted(tmp_path) is None
    for content in ("[]", '{"trained_positions": "16"}', "{}", '{"trained_positions": 0}'):
        (tmp_path / "pretraining.json").write_text(content)
        with pytest.raises(InputError, match="must hold trained_positions"):
            ModelFolder(str(tmp_path)).trained_positions  # noqa: B018 (read when asked for)


@pytest.mark.parametrize("record_format", (FORMAT, DYNAMIC, PACKED, PACKED_DYNAMIC))
def test_the_longest_sequence_of_records(record_format, tmp_path):
    """Of packed rows each sequence begins at position 0."""
    lengths = []

    def note(_, row):
        if "position_ids" in row:
            lengths.append(max(row["position_ids"]) + 1)
        elif record_format.packed_sequences:
            parts = row["segment_lengths"]
            lengths.append(max(a + b for a, b in zip(parts[::2], parts[1::2], strict=True)))

    files = make_files(tmp_path, (5, 5), record_format, change=note)
    expected = max(lengths) if record_format.packed_sequences else record_format.max_seq_length
    assert longest_sequence(files, record_format) == expected
    assert bool(record_format.packed_sequences) == (expected < record_format.max_seq_length)
