"""Programs that cut text warn, before their long work, of a vocabulary that cannot spell it."""

import json

import pytest

from bert_common.errors import InputError
from bert_tf.checkpoint import save_google_checkpoint
from bert_tf.checkpoint_files import checkpoint_path
from run_scripts import classifier, create_data, extract_features, ner, race, similarity, squad
from run_scripts.downstream import program
from run_scripts.tools import fill_masks
from tests.support.create_data_runs import make_small
from tests.support.programs import ClassifierJob
from tests.support.task_data import (
    SENTENCE_PIECES,
    number_questions,
    single_rows,
    write_questions,
    write_race,
    write_splits,
)
from tests.support.tiny_models import SIZES, tiny_model
from tests.support.vocabularies import SPECIAL

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
    """Data for every downstream task; its programs end where they would import TensorFlow."""
    monkeypatch.setattr(program, "start_tensorflow", stop)
    job = ClassifierJob(tmp_path)
    write_splits(job.data, ["text", "label"], single_rows(24), train=(0, 16), dev=(16, 24))
    (job.data / "train.txt").write_text("the O\nfilm B-X\nis O\nbad O\n\n" * 4)
    write_questions(job.data / "train.json", number_questions(4, 1))
    write_questions(job.data / "dev.json", number_questions(4, 1))
    write_race(job.data, train=2, dev=1, test=1)
    return job


SQUAD = {"max_seq_length": 24, "max_query_length": 5, "doc_stride": 8}
DOWNSTREAM = (
    (classifier, {}),
    (ner, {"task_name": "conll"}),
    (squad, {"task_name": None, "train_file": "train.json", **SQUAD}),
    (race, {"task_name": None, "max_qa_length": 8}),
    (similarity, {}),
)


@pytest.mark.parametrize(("module", "flags"), DOWNSTREAM, ids=lambda each: str(each)[:30])
def test_fine_tuning(job, capsys, module, flags):
    job.main = module.main
    job.folder.joinpath("vocab.txt").unlink()
    write_vocabulary(job.folder)
    assert job.run(**flags) == 1
    (line,) = warned(capsys)
    assert line.startswith("warning: train: 100% of the tokens") and "--spm_model_file" in line


def test_fine_tuning_with_a_fitting_vocabulary(job, capsys):
    write_vocabulary(job.folder, SENTENCE_PIECES[len(SPECIAL) :])
    assert job.run() == 1
    assert warned(capsys) == []


def test_a_split_of_another_kind(job, capsys):
    rows = [(f"버스는 산으로 간다 {number}", "good") for number in range(9)]
    write_splits(job.data, ["text", "label"], rows, dev=(0, 9))
    assert job.run(do_eval=True) == 1
    (line,) = warned(capsys)
    assert line.startswith("warning: dev: 100% of the tokens") and "another language" in line


@pytest.mark.parametrize("words", (False, True))
def test_features(tmp_path, monkeypatch, capsys, words):
    monkeypatch.setattr(extract_features, "open_encoder", stop)
    (tmp_path / "config.json").write_text(json.dumps(SIZES))
    save_google_checkpoint(tiny_model(), str(tmp_path / "model.ckpt-3"))
    (tmp_path / "text.txt").write_text("나는 ||| 학교에\n\n갔다\n", encoding="utf-8")
    argv = [
        "extract_features.py", f"--input_file={tmp_path}/text.txt",
        f"--output_file={tmp_path}/out.npz", f"--bert_config_file={tmp_path}/config.json",
        f"--init_checkpoint={tmp_path}/model.ckpt-3", f"--vocab_file={write_vocabulary(tmp_path)}",
        "--max_seq_length=16", "--layers=-1",
    ]  # fmt: skip
    assert extract_features.main([*argv, *["--word_embeddings"] * words]) == 1
    (line,) = warned(capsys)
    assert "'나는', '학교에', '갔다'" in line and "--spm_model_file" in line


def test_masks(tmp_path, capsys):
    write_vocabulary(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"kind": "korean"}')
    (tmp_path / "bert_config.json").write_text(json.dumps(SIZES))
    save_google_checkpoint(tiny_model(), checkpoint_path(tmp_path, 3))
    assert fill_masks.main(["fill-masks", f"--model_dir={tmp_path}", "--text=나는 [MASK]"]) == 0
    (line,) = warned(capsys)
    assert "cannot spell '나는'. Likely" in line and "--spm_model_file" in line


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
