"""Programs that cut text warn, before their long work, of a vocabulary that cannot spell it."""

import json

import pytest

from bert_common.errors import InputError
from bert_tf.checkpoint import save_google_checkpoint
from bert_tf.checkpoint_files import checkpoint_path
from run_scripts import create_data, extract_features
from run_scripts.downstream import program
from run_scripts.tools import fill_masks
from tests.support.create_data_runs import make_small
from tests.support.programs import ClassifierJob
from tests.support.task_data import write_splits
from tests.support.tiny_models import SIZES, tiny_model
from tests.support.vocabularies import SPECIAL, write_tokenizer

MARKED = ["▁나는", "▁학교", "에", "▁갔", "다", ".", "▁배우", "들의", "▁연기", "가"]
TEXT = "나는 학교에 갔다.\n배우들의 연기가 좋았다.\n\n"


def stop(*_, **__):
    raise InputError("stopped before the long work")


def write_vocabulary(folder, pieces=MARKED):
    path = folder / "vocab.txt"
    path.write_text("\n".join([*SPECIAL, *pieces]) + "\n", encoding="utf-8")
    return path


def warned(capsys):
    """The warnings of a run about [UNK]."""
    lines = capsys.readouterr().err.splitlines()
    found = [line for line in lines if "are [UNK]" in line]
    assert all(line.startswith("warning: ") for line in found)
    return found


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A job whose program ends where it would import TensorFlow."""
    monkeypatch.setattr(program, "start_tensorflow", stop)
    return ClassifierJob(tmp_path).with_sentences(16, 8)


def test_fine_tuning(job, capsys):
    assert job.run() == 1
    assert warned(capsys) == []
    write_vocabulary(job.folder)
    assert job.run() == 1
    (line,) = warned(capsys)
    assert line.startswith("warning: train: 100% of the tokens") and "--spm_model_file" in line


def test_a_split_of_another_kind(job, capsys):
    rows = [(f"버스는 산으로 간다 {number}", "good") for number in range(9)]
    write_splits(job.data, ["text", "label"], rows, dev=(0, 9))
    assert job.run(do_eval=True) == 1
    (line,) = warned(capsys)
    assert line.startswith("warning: dev: 100% of the tokens") and "another language" in line


FEATURES = ["--input_file=text.txt", "--output_file=out.npz", "--layers=-1", "--max_seq_length=16"]


@pytest.mark.parametrize(
    "main, flags, said",
    (
        (extract_features.main, FEATURES, "'나는', '학교에', '갔다'"),
        (fill_masks.main, ["--text=나는 [MASK]"], "cannot spell '나는'. Likely"),
    ),
)
def test_a_loaded_model(tmp_path, monkeypatch, capsys, main, flags, said):
    monkeypatch.chdir(tmp_path)
    write_tokenizer(tmp_path, [*SPECIAL, *MARKED])
    (tmp_path / "bert_config.json").write_text(json.dumps(SIZES))
    save_google_checkpoint(tiny_model(), checkpoint_path(tmp_path, 3))
    (tmp_path / "text.txt").write_text("나는 ||| 학교에\n\n갔다\n", encoding="utf-8")
    assert main(["program", "--model_dir=.", *flags]) == 0
    (line,) = warned(capsys)
    assert said in line and "--spm_model_file" in line


@pytest.mark.filterwarnings("always")  # the same warning in two runs of one process
def test_records(tmp_path, monkeypatch, capsys):
    (tmp_path / "text.txt").write_text(TEXT * 200, encoding="utf-8")
    argv = [
        "create_pretraining_data.py", f"--input_file={tmp_path}/text.txt",
        f"--vocab_file={write_vocabulary(tmp_path)}", "--tokenizer=korean", "--num_workers=1",
    ]  # fmt: skip
    assert create_data.main([*argv, f"--output_file={tmp_path}/one.tfrecord"]) == 0
    (line,) = warned(capsys)
    assert "'나는', '학교에', '갔다.'" in line and "--spm_model_file" in line
    make_small(monkeypatch)
    assert create_data.main([*argv, f"--output_file={tmp_path}/two.tfrecord"]) == 0
    early, late = warned(capsys)
    assert early.startswith("warning: so far ") and early.endswith(line[-60:])
    assert late == line
    characters = sorted(set(TEXT) - set(" \n"))
    write_vocabulary(tmp_path, [*characters, *(f"##{each}" for each in characters)])
    assert create_data.main([*argv, f"--output_file={tmp_path}/three.tfrecord"]) == 0
    assert warned(capsys) == []
