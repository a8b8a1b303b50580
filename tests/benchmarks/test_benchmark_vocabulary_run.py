"""A whole run of the comparison of vocabularies, with tiny models on invented text."""

import json
import random
import sys

import pytest
import vocabulary

SPECIAL = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}


WORDS = ["나라", "사람", "학교", "우리", "바다", "하늘", "마을", "친구", "노래", "이야기"]
PARTICLES = ("는", "가", "를", "에서", "")


def made_text(seed, documents):
    rng = random.Random(seed)

    def sentence():
        return " ".join(rng.choice(WORDS) + rng.choice(PARTICLES) for _ in range(8))

    return "\n\n".join("\n".join(sentence() for _ in range(4)) for _ in range(documents))


def test_characters_leave_room_for_longer_pieces(tmp_path):
    pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
    from vocabulary_models import usual_vocabulary

    syllables = [chr(0xAC00 + i) for i in range(100)]
    words = [first + second for first in syllables for second in syllables]
    (tmp_path / "text").write_text("나라에서 " * 1000 + " ".join(words * 2), encoding="utf-8")
    usual = usual_vocabulary.learn([str(tmp_path / "text")], tmp_path / "usual", 160)
    assert usual.vocab_size == 160
    assert usual.tokenize("나라에서") == ["나라에서"]


@pytest.mark.slow
def test_a_whole_run(tmp_path, monkeypatch, capsys):
    pytest.importorskip("tokenizers", reason="the package tokenizers is not installed")
    from vocabulary_models import usual_vocabulary

    texts = {"text": made_text(1, 30), "held_out": made_text(2, 6)}
    lines = [f"{i}\t{made_text(i, 1)[:20].strip()}\t{i % 2}" for i in range(40)]
    for name in ("reviews", "test_reviews"):
        texts[name] = "\n".join(["id\tdocument\tlabel", *lines])
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    usual = usual_vocabulary.learn([str(tmp_path / "text")], tmp_path / "usual", 60)
    assert usual.tokenize("나라는 학교") != ["[UNK]", "[UNK]"]
    (tmp_path / "fine").mkdir()
    characters = sorted({c for word in (*WORDS, *PARTICLES) for c in word})
    pieces = [*SPECIAL, *characters, *(f"##{c}" for c in characters)]
    (tmp_path / "fine" / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    (tmp_path / "fine" / "tokenizer_config.json").write_text('{"kind": "korean"}')
    flags = {
        "vocabs": f"{tmp_path}/fine,{tmp_path}/usual",
        **{name: tmp_path / name for name in texts},
        "work_dir": tmp_path / "runs",
        "seeds": "1",
        "characters": 60,
        "batch": 4,
        "steps": 10,
        "held_out_used": 5,
        "reviews_used": 16,
        "test_reviews_used": 10,
        "review_batch": 8,
    }
    arguments = ["vocabulary", *(f"--{name}={value}" for name, value in flags.items())]
    monkeypatch.setattr(sys, "argv", arguments)
    vocabulary.main()
    first = capsys.readouterr().out
    rows = [line.strip("| ").split(" | ") for line in first.splitlines()[2:4]]
    assert [row[0] for row in rows] == ["fine", "usual"]
    for row in rows:
        assert 1 < float(row[2].split(" ± ")[0]) < 20  # bits per character
    numbers = (tmp_path / "runs" / "results.jsonl").read_text().splitlines()
    parts = [(line["part"], line["vocabulary"]) for line in map(json.loads, numbers[1:])]
    assert sorted(parts) == sorted(
        (part, name)
        for part in ("pretraining", "reviews", "from_new")
        for name in ("fine", "usual")
    )
    vocabulary.main()  # nothing is left to do
    assert capsys.readouterr().out == first
