"""The files that programs get, good ones of every kind with the ways to damage them."""

import json
import os
import shutil

from bert_tf.checkpoint import save_google_checkpoint
from finetuning.classification.head import SequenceClassifier
from finetuning.tasks import TASKS
from tests.support.record_files import DYNAMIC, FORMAT, describe, make_files
from tests.support.task_data import (
    KLUE_HEADER,
    klue_sentence,
    squad_content,
    write_race,
    write_race_lines,
    write_table,
)
from tests.support.tiny_models import tiny_model, write_config
from tests.support.vocabularies import SPECIAL, write_tokenizer

WORDS = ["나", "##는", "학교", "##에", "갔", "##다", ".", "good", "bad", "the", "film", "red", "?"]
SENTENCES = "나는 학교에 갔다.\nthe film is good\n\n학교는 bad\n나는 red film\n" * 4


# === Good files ===


def make_world(folder):
    """All files that the programs' good flags name."""
    model = folder / "model"
    for path in (model, folder / "tsv", folder / "conll", folder / "klue", folder / "race"):
        path.mkdir()
    write_tokenizer(model, [*SPECIAL, *WORDS])
    (model / "pretraining.json").write_text('{"trained_positions": 32}')
    write_config(model / "bert_config.json")
    save_google_checkpoint(tiny_model(num_hidden_layers=1), str(model / "model.ckpt-3"))
    (folder / "text.txt").write_text(SENTENCES)
    lines = [json.dumps({"text": text}) for text in SENTENCES.split("\n\n")]
    (folder / "text.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "words.txt").write_text("친구\nmovie\n")
    (folder / "sentences.txt").write_text("나는 ||| 학교에\nthe film\n")
    make_files(folder, (6,))
    describe(str(folder / "part-0.tfrecord"), FORMAT)
    (folder / "unmasked").mkdir()
    make_files(folder / "unmasked", (6,), DYNAMIC)
    rows = [f"the film {i}\t{('good', 'bad')[i % 2]}" for i in range(8)]
    for split in ("train", "dev", "test"):
        (folder / "tsv" / f"{split}.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n")
        made = [dict(zip(("text", "label"), row.split("\t"), strict=True)) for row in rows]
        made = [{**row, "score": i / 2} for i, row in enumerate(made)]
        (folder / "tsv" / f"{split}.jsonl").write_text("\n".join(map(json.dumps, made)) + "\n")
        (folder / "conll" / f"{split}.txt").write_text("the O\nfilm B-X\n\nbad O\nred B-Y\n" * 3)
    tagged = KLUE_HEADER + klue_sentence("00000-wikitree", "서울 역에서#|B-LC I-LC I-LC I-LC O O O")
    for split in ("train", "dev"):
        (folder / "klue" / f"klue-ner-v1.1_{split}.tsv").write_text(tagged)
        (folder / f"{split}.json").write_text(json.dumps(squad_content()))
        write_race_lines(folder / "race" / f"{split}.jsonl", 4)
    write_race(folder / "race", train=2, dev=2, test=2)
    similar = [
        {"guid": str(i), "sentence1": "the film", "sentence2": "red",
         "labels": {"label": 3.7, "real-label": 3.714, "binary-label": 1}}
        for i in range(4)
    ]  # fmt: skip
    for split in ("train", "dev"):
        (folder / "klue" / f"klue-sts-v1.1_{split}.json").write_text(json.dumps(similar))
    write_pairs(folder)
    shutil.copytree(model, folder / "tuned", ignore=shutil.ignore_patterns("*ckpt*"))
    classifier_model = SequenceClassifier(tiny_model(num_hidden_layers=1).encoder, 2)
    save_google_checkpoint(classifier_model, str(folder / "tuned" / "model.ckpt-1"))
    remembered = dict.fromkeys(TASKS["classification"].settings)
    remembered |= {"task": "classification", "task_name": "tsv", "max_seq_length": 16}
    (folder / "tuned" / "finetuning.json").write_text(json.dumps(remembered))
    (folder / "job.flags").write_text("--random_seed=1\n")
    return folder


def write_pairs(folder):
    """Scored pairs of texts, and a collection of queries and passages as BEIR's."""
    rows = [("the film", "red", i % 5) for i in range(8)]
    columns = ("text", "second", "score")
    (folder / "pairs").mkdir()
    for split in ("train", "dev"):
        write_table(folder / "pairs" / f"{split}.tsv", columns, rows)
        made = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
        (folder / "pairs" / f"{split}.jsonl").write_text("\n".join(made) + "\n")
    (folder / "beir" / "qrels").mkdir(parents=True)
    for name in ("queries", "corpus"):
        made = [json.dumps({"_id": f"{name}{i}", "text": f"the film {i}"}) for i in range(4)]
        (folder / "beir" / f"{name}.jsonl").write_text("\n".join(made) + "\n")
    answers = [(f"queries{i}", f"corpus{i}", 1) for i in range(4)]
    write_table(folder / "beir" / "qrels" / "test.tsv", ("query-id", "corpus-id", "score"), answers)


# === Damage: (random numbers, bytes) -> what it is, the new bytes, whether the run must fail ===


def make_folder(path):
    os.makedirs(path)


def nothing(path):
    """Writes no file."""


def lost(draw, old):
    yield "missing", nothing, True
    yield "a folder", make_folder, True


def not_text(draw, old):
    yield "random bytes", b"\xff" + draw.randbytes(draw.randrange(1, 400)), True
    # JSON may be UTF-16.
    yield "UTF-16", old.decode().encode("utf-16"), not old.startswith((b"{", b"["))
    place = draw.randrange(len(old))
    yield "a byte that is no UTF-8", old[:place] + b"\xff" + old[place:], True


def unreadable(draw, old):
    """Of what is read in any encoding of Korean text."""
    for name, content, is_refused in not_text(draw, old):
        yield name, content, is_refused and name != "UTF-16"


def empty(draw, old):
    yield "empty", b"", True


def cut(draw, old):
    yield "cut", old[: draw.randrange(len(old))], False
    place = draw.randrange(len(old))
    size = draw.randrange(1, 9)
    yield "overwritten", old[:place] + draw.randbytes(size) + old[place + size :], False
    yield "zeros", bytes(draw.randrange(1, 5000)), False


def changed_lines(draw, old):
    lines = old.split(b"\n")
    place = draw.randrange(len(lines))
    odd = (b"", b"\t", b"\t\t\t\t\t\t", b"x", b"1", b" ", b'"', b"\0", b"{", b"a\xe2\x80\xa8b",
           b"O", b"B-X", b"x\tB-", b"I-X", b"- - - -", b"1e400", b"9" * 5000)  # fmt: skip
    yield "an odd line", b"\n".join([*lines[:place], draw.choice(odd), *lines[place:]]), False
    yield "a line less", b"\n".join(lines[:place] + lines[place + 1 :]), False
    yield "one line", lines[0] + b"\n", False


ODD_VALUES = (
    None, True, False, -1, 0, 1.5, 10**400, 10**25, -(2**63) - 1, "", "x", "가" * 3000, [], {},
    [[]], [None], {"a": {}}, ["x"], [-1], float("nan"), float("inf"), "\ud800", "\0",
)  # fmt: skip


def places_of(value, path=()):
    """The way to every value within a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, each in items:
        yield from places_of(each, (*path, key))


def with_value(value, path, new):
    """A JSON value with another one at a place."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = with_value(value[path[0]], path[1:], new)
    return copy


def odd_value(draw, value):
    return with_value(value, draw.choice(list(places_of(value))), draw.choice(ODD_VALUES))


def broken_json(draw, old):
    stripped = old.strip()
    yield "cut JSON", stripped[: draw.randrange(1, len(stripped))], True
    yield "nested JSON", b"[" * 100_000 + b"]" * 100_000, True
    yield "nested objects", b'{"a":' * 100_000 + b"1" + b"}" * 100_000, True
    yield "a long number", b'{"a": ' + b"9" * 5000 + b"}", True
    yield "no object", draw.choice((b"3", b"null", b'"x"', b"true", b"NaN")), True


def odd_json(draw, old):
    for _ in range(6):
        yield "an odd value", json.dumps(odd_value(draw, json.loads(old))).encode(), False


def odd_lines(draw, old):
    lines = old.strip().split(b"\n")
    for _ in range(6):
        place = draw.randrange(len(lines))
        line = json.dumps(odd_value(draw, json.loads(lines[place]))).encode()
        yield "an odd value", b"\n".join([*lines[:place], line, *lines[place + 1 :]]), False


def wrong_sizes(draw, old):
    config = json.loads(old)
    for _ in range(4):
        name = draw.choice([name for name in config if type(config[name]) is int])
        value = draw.choice((0, -1, 1.5, "1", None, [], True, 2**31, 10**400, float("nan")))
        yield f"{name} of {str(value)[:9]}", json.dumps({**config, name: value}).encode(), True
    yield "an unknown key", json.dumps({**config, "nonsense": 1}).encode(), True


def small_table(draw, old):
    yield "a small table", json.dumps({**json.loads(old), "vocab_size": 7}).encode(), True


def wrong_pieces(draw, old):
    lines = old.decode().split("\n")
    for special in ("[UNK]", "[CLS]", "[SEP]", "[MASK]"):
        yield f"no {special}", old.replace(special.encode(), b"x"), True
    place = draw.randrange(len(lines) - 1)
    yield "a blank line", "\n".join([*lines[:place], "", *lines[place:]]).encode(), True
    yield "a piece twice", "\n".join([*lines[: place + 1], *lines[place:]]).encode(), True
    yield "too many pieces", old + b"".join(b"p%d\n" % i for i in range(99)), False


def wrong_words(draw, old):
    yield "a blank line", b"x\n \n" + old, False
    yield "a word twice", old + old, False
    yield "nothing that normalization leaves", old + b"\xe2\x80\x8b\n", True
    yield "no new word", "나\n학교\n나는 학교\n".encode(), True


def wrong_switches(draw, old):
    for switch in (
        {"kind": "x"}, {"kind": None}, {"kind": []}, {"nonsense": 1}, {"shorten_runs": 2**32},
        {"shorten_runs": 10**400}, {"word_end_marker": "\ud800"}, {"normalization": "NFD"},
        {"do_lower_case": 1}, {"continuation_prefix": None}, {"word_end_marker_at": "eojeol"},
        {"unknown": "character", "word_end_marker": "xx"}, {"jamo_fallback": True},
        {"strict_vocabulary": "no"}, {"kind": "sentencepiece"},
    ):  # fmt: skip
        yield str(switch)[:40], json.dumps({**json.loads(old), **switch}).encode(), True


def wrong_records(draw, old):
    yield "cut", old[: -draw.randrange(1, 60)], True
    yield "no records", SENTENCES.encode(), True
    yield "random bytes", draw.randbytes(500), True
    place = draw.randrange(len(old))
    other = bytes([old[place] ^ (1 << draw.randrange(8))])
    yield "a bit", old[:place] + other + old[place + 1 :], True


def wrong_index(draw, old):
    yield "cut", old[: draw.randrange(1, len(old))], True
    yield "random bytes", draw.randbytes(len(old)), True
    yield "text", SENTENCES.encode(), True
    place = draw.randrange(len(old))
    yield "a byte", old[:place] + bytes([old[place] ^ 255]) + old[place + 1 :], False


def wrong_tensors(draw, old):
    yield "cut", old[: draw.randrange(len(old) // 2)], True
    place = draw.randrange(len(old))
    yield "a byte", old[:place] + bytes([old[place] ^ 255]) + old[place + 1 :], False


def wrong_columns(draw, old):
    yield "another header", b"x\ty\n" + old.partition(b"\n")[2], True
    yield "a header alone", old.partition(b"\n")[0] + b"\n", True
    yield "a short row", old + b"alone\n", True
    yield "no label", old + b"a film\t\n", True


def wrong_flags(draw, old):
    yield "an unknown flag", b"--nonsense=1\n", True
    yield "no flag", b"nonsense\n", True
    yield "a bad value", b"--random_seed=x\n", True
    for name in (b"output_dir", b"output_file", b"model_dir", b"input_file"):
        yield "a zero byte", b"--%s=a\0b" % name, True


JSON = (lost, not_text, empty, broken_json)
DAMAGE = {
    "config": (*JSON, odd_json, wrong_sizes, small_table),
    "config alone": (*JSON, odd_json, wrong_sizes),  # no vocabulary to be smaller than
    "tokenizer": (*JSON, odd_json, wrong_switches),
    "json": (*JSON, odd_json),
    "questions": (*JSON, odd_json, odd_json, odd_json),
    "settings": (*JSON, odd_json, odd_json),
    "sidecar": (cut, odd_json, odd_json),
    "vocabulary": (lost, not_text, empty, wrong_pieces, cut),
    "words": (lost, unreadable, empty, wrong_words),
    "text": (lost, empty, cut),
    "sentences": (lost, cut),
    "lines": (lost, unreadable, empty, odd_lines, odd_lines, cut, changed_lines),
    "table": (lost, unreadable, empty, cut, changed_lines, wrong_columns),
    "tags": (lost, unreadable, empty, cut, changed_lines, changed_lines),
    "records": (lost, empty, wrong_records),
    "index": (lost, empty, wrong_index),
    "tensors": (lost, empty, wrong_tensors),
    "flags": (lost, not_text, wrong_flags),
}

# Damage that the program tolerates, or that its good flags do not reveal.
TAKEN = {
    ("build_vocab on JSON lines", "text.jsonl", "a byte that is no UTF-8"),  # counted as skipped
    ("create_pretraining_data", "text.txt", "empty"),  # the work finds no sentence
    ("run_race on JSON lines", "race/dev.jsonl", "missing"),
    ("run_race", "race/dev/high/1.txt", "missing"),
}
# Not all splits need be there.
for program, split in (
    ("run_classifier", "tsv/dev.tsv"),
    ("run_classifier on JSON lines", "tsv/dev.jsonl"),
    ("run_classifier on numbers", "tsv/dev.jsonl"),
    ("run_classifier --do_predict", "tsv/test.tsv"),
    ("run_ner", "conll/dev.txt"),
    ("run_similarity", "pairs/dev.tsv"),
):
    TAKEN |= {(program, split, "missing"), (program, split, "a folder")}
