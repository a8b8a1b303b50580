"""A format of exports is a module and a row of FORMATS."""

from model_folders import PIECES, write_folder

from run_scripts.conversion import export_model


def test_a_format_of_ones_own(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(export_model.FORMATS, "word_list", export_model.Format("word_list"))
    write_folder(tmp_path / "model")
    flags = (f"--model_dir={tmp_path}/model", f"--output_dir={tmp_path}/out", "--format=word_list")
    assert export_model.main(["export_model.py", *flags]) == 0
    assert (tmp_path / "out" / "pieces.txt").read_text().split("\n") == PIECES
    assert f"open('{tmp_path}/out/pieces.txt')" in capsys.readouterr().out
