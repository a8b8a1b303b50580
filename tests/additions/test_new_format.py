"""A format of exports is a module and a row of FORMATS."""

from run_scripts.conversion import export_model
from tests.support.models.model_folders import PIECES, write_folder


def test_a_format_of_ones_own(tmp_path, monkeypatch, capsys):
    row = export_model.Format("tests.support.word_list")
    monkeypatch.setitem(export_model.FORMATS, "word_list", row)
    write_folder(tmp_path / "model")
    flags = (f"--model_dir={tmp_path}/model", f"--output_dir={tmp_path}/out", "--format=word_list")
    assert export_model.main(["export_model.py", *flags]) == 0
    assert (tmp_path / "out" / "pieces.txt").read_text().split("\n") == PIECES
    assert f"open('{tmp_path}/out/pieces.txt')" in capsys.readouterr().out
