"""A path that begins with ~ is in the home folder, for the functions that Python calls too."""

from korean_bert import load_model
from tests.support.models.model_folders import write_folder
from tokenization import load_tokenizer, save_tokenizer


def test_home_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    write_folder(tmp_path / "model")
    model = load_model("~/model")
    save_tokenizer(model.tokenizer, "~/copy")
    assert load_tokenizer("~/copy").vocab == load_tokenizer(tmp_path / "copy").vocab
    assert not (tmp_path / "~").exists()
