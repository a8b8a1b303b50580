"""Bad values and bad files for every program, drawn by a seed; what must come of them.

Every case is a good command line on good files with one thing changed. A run that the change does
no harm to is stopped where its work would begin.
"""

import contextlib
import dataclasses
import io
import json
import os
import random
import shutil
import traceback
import warnings
from typing import NamedTuple

from made_questions import content
from made_records import FORMAT, UNMASKED, describe, make_files
from test_ner_data import KLUE_HEADER, klue
from test_race import write_lines, write_race
from tiny import SIZES, tiny_model

from bert_tf.checkpoint import save_google_checkpoint
from finetuning.classification.head import SequenceClassifier
from run_scripts import (
    build_vocab,
    classifier,
    create_data,
    extract_features,
    ner,
    pretrain,
    race,
    squad,
)
from run_scripts.flags.create_data import CreateDataFlags
from run_scripts.flags.declaration import value_type
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.tools import fill_masks
from run_scripts.tools import glue_plan as benchmark_plan
from run_scripts.tools import glue_table as benchmark_table

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["나", "##는", "학교", "##에", "갔", "##다", ".", "good", "bad", "the", "film", "red", "?"]
SENTENCES = "나는 학교에 갔다.\nthe film is good\n\n학교는 bad\n나는 red film\n" * 4


class Started(BaseException):
    """The work itself would begin."""


class Case(NamedTuple):
    """A bad command line.

    Attributes:
        what: for a person.
        flags: what differs from the program's good flags; None: a flag that is left out.
        more: arguments after them.
        path: the file that is changed, below the world's folder, or None.
        content: its bytes, or a function that is called with its path.
        must_fail: whether the run must end with an error; else it may also begin to work.
        about: the line must hold one of these.
    """

    what: str
    flags: dict
    more: tuple = ()
    path: str | None = None
    content: object = None
    must_fail: bool = True
    about: tuple = ()


class Program(NamedTuple):
    """A program with good flags.

    Attributes:
        main: takes a command line, returns the exit status.
        flags_class: its flags.
        flags: flag -> value; "{}" stands for the world's folder.
        files: file -> its kind, a key of `DAMAGE`.
        texts: flag -> values that it does not have.
    """

    main: object
    flags_class: type
    flags: dict
    files: dict
    texts: dict = {}


# === Good files ===


def make_world(folder):
    """All files that the programs' good flags name."""
    model = folder / "model"
    for path in (model, folder / "tsv", folder / "conll", folder / "klue", folder / "race"):
        path.mkdir()
    pieces = [*SPECIAL, *WORDS]
    (model / "vocab.txt").write_text("\n".join(pieces) + "\n")
    (model / "tokenizer_config.json").write_text('{"kind": "korean"}')
    (model / "pretraining.json").write_text('{"trained_positions": 32}')
    config = {**SIZES, "num_hidden_layers": 1}
    (model / "bert_config.json").write_text(json.dumps(config))
    save_google_checkpoint(tiny_model(num_hidden_layers=1), str(model / "model.ckpt-3"))
    (folder / "text.txt").write_text(SENTENCES)
    lines = [json.dumps({"text": text}) for text in SENTENCES.split("\n\n")]
    (folder / "text.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "sentences.txt").write_text("나는 ||| 학교에\nthe film\n")
    make_files(folder, (6,))
    describe(str(folder / "part-0.tfrecord"), FORMAT)
    (folder / "unmasked").mkdir()
    make_files(folder / "unmasked", (6,), UNMASKED)
    rows = [f"the film {i}\t{('good', 'bad')[i % 2]}" for i in range(8)]
    for split in ("train", "dev", "test"):
        (folder / "tsv" / f"{split}.tsv").write_text("text\tlabel\n" + "\n".join(rows) + "\n")
        made = [dict(zip(("text", "label"), row.split("\t"), strict=True)) for row in rows]
        made = [{**row, "score": i / 2} for i, row in enumerate(made)]
        (folder / "tsv" / f"{split}.jsonl").write_text("\n".join(map(json.dumps, made)) + "\n")
        (folder / "conll" / f"{split}.txt").write_text("the O\nfilm B-X\n\nbad O\nred B-Y\n" * 3)
    tagged = KLUE_HEADER + klue("00000-wikitree", "서울 역에서#|B-LC I-LC I-LC I-LC O O O")
    for split in ("train", "dev"):
        (folder / "klue" / f"klue-ner-v1.1_{split}.tsv").write_text(tagged)
        (folder / f"{split}.json").write_text(json.dumps(content()))
        write_lines(folder / "race" / f"{split}.jsonl", 4)
    write_race(folder / "race", train=2, dev=2, test=2)
    for dataset, rows in (("CoLA", "gj04\t1\t\tthe film\n" * 2), ("NSMC", "")):
        (folder / "glue" / dataset).mkdir(parents=True)
        for split in ("train", "dev"):
            (folder / "glue" / dataset / f"{split}.tsv").write_text(rows)
    for dataset in ("cola", "rte"):
        (folder / "results" / dataset).mkdir(parents=True)
    (folder / "results" / "cola" / "eval_results.txt").write_text(
        "eval_accuracy = 0.5\neval_matthews = 0.5\nloss = 1.0\n"
    )
    seeds = "name\tmean\tdeviation\neval_accuracy\t0.5\t0.1\tx\n"
    (folder / "results" / "rte" / "seeds.tsv").write_text(seeds)
    similar = [
        {"guid": str(i), "sentence1": "the film", "sentence2": "red",
         "labels": {"label": 3.7, "real-label": 3.714, "binary-label": 1}}
        for i in range(4)
    ]  # fmt: skip
    for split in ("train", "dev"):
        path = folder / "klue" / f"klue-sts-v1.1_{split}.json"
        path.write_text(json.dumps(similar))
    shutil.copytree(model, folder / "tuned", ignore=shutil.ignore_patterns("*ckpt*"))
    classifier_model = SequenceClassifier(tiny_model(num_hidden_layers=1).encoder, 2)
    save_google_checkpoint(classifier_model, str(folder / "tuned" / "model.ckpt-1"))
    remembered = dict.fromkeys(classifier.TASK_FLAGS) | {"task_name": "tsv", "max_seq_length": 16}
    (folder / "tuned" / "finetuning.json").write_text(json.dumps(remembered))
    (folder / "job.flags").write_text("--random_seed=1\n")
    return folder


MODEL_FILES = {
    "model/bert_config.json": "config",
    "model/vocab.txt": "vocabulary",
    "model/tokenizer_config.json": "tokenizer",
    "model/model.ckpt-3.index": "index",
    "model/model.ckpt-3.data-00000-of-00001": "tensors",
}
FLAG_FILE = {"job.flags": "flags"}
MODEL_FLAGS = {
    "bert_config_file": "{}/model/bert_config.json",
    "tokenizer_dir": "{}/model",
    "init_checkpoint": "{}/model/model.ckpt-3",
}
FINETUNE_FLAGS = {
    **MODEL_FLAGS, "output_dir": "{}/out", "do_train": True, "do_eval": True, "train_step": 1,
    "xla": "off", "max_seq_length": 16, "bucket_boundaries": "none",
}  # fmt: skip
NO_LAYERS = ("x", "99", "0,,1", "-99", "1.5", "9" * 5000)
FINETUNE_TEXTS = {
    "bucket_boundaries": ("x", "8,4", "0", "99999", "4,,8"),
    "profile_steps": ("x", "5", "5,1", "0,1", "-1,2", "1,2,3", "9" * 5000),
    "feature_layers": NO_LAYERS,
    "albert_hub_module_handle": ("https://tfhub.dev/google/albert_base/2",),
}
COLUMNS = ("nothing", "7", "9" * 5000)

PROGRAMS = {
    "build_vocab": Program(
        build_vocab.main,
        build_vocab.BuildVocabFlags,
        {
            "input_file": "{}/text.txt", "output_dir": "{}/out", "analyser": "none",
            "vocab_size": 1000,
        },
        {"text.txt": "text", **FLAG_FILE},
        {"text": ("a",), "compare": ("{}/none", "{}/text.txt", ",")},
    ),
    "build_vocab on JSON lines": Program(
        build_vocab.main,
        build_vocab.BuildVocabFlags,
        {
            "input_file": "{}/text.jsonl", "input_format": "jsonl", "output_dir": "{}/out",
            "analyser": "none", "vocab_size": 1000,
        },
        {"text.jsonl": "lines"},
    ),
    "build_vocab --compare": Program(
        build_vocab.main,
        build_vocab.BuildVocabFlags,
        {"compare": "{}/model"},
        {"model/vocab.txt": "vocabulary", "model/tokenizer_config.json": "tokenizer"},
        {"input_file": ("a",), "output_dir": ("a",)},
    ),
    "create_pretraining_data": Program(
        create_data.main,
        CreateDataFlags,
        {
            "input_file": "{}/text.txt", "output_file": "{}/out/a.tfrecord", "num_workers": 1,
            "tokenizer_dir": "{}/model", "max_seq_length": 16, "dupe_factor": 1,
        },
        {
            "text.txt": "text", "model/vocab.txt": "vocabulary",
            "model/tokenizer_config.json": "tokenizer", **FLAG_FILE,
        },
        {
            "output_file": (
                "{}/tsv", "{}/text.txt", "{}/text.txt/a", "a@0", "a@999999", ",", "a,a",
            ),
            "spark_master": ("local[1]",),
        },
    ),
    "run_pretraining": Program(
        pretrain.main,
        PretrainFlags,
        {
            **MODEL_FLAGS, "input_file": "{}/part-0.tfrecord", "output_dir": "{}/out",
            "do_train": True, "num_train_steps": 2, "num_warmup_steps": 1, "train_batch_size": 2,
            "xla": "off",
        },
        {
            **MODEL_FILES, "part-0.tfrecord": "records", "part-0.json": "sidecar", **FLAG_FILE,
        },
        {
            "bucket_boundaries": FINETUNE_TEXTS["bucket_boundaries"],
            "profile_steps": FINETUNE_TEXTS["profile_steps"],
            "allow_missing": ("nothing/", "x,y"),
        },
    ),
    "run_pretraining, masks drawn": Program(
        pretrain.main,
        PretrainFlags,
        {
            **MODEL_FLAGS, "input_file": "{}/unmasked/part-0.tfrecord", "output_dir": "{}/out",
            "do_train": True, "num_train_steps": 2, "num_warmup_steps": 1, "train_batch_size": 2,
            "xla": "off",
        },
        {"unmasked/part-0.tfrecord": "records", "unmasked/part-0.json": "sidecar"},
    ),
    "run_classifier": Program(
        classifier.main,
        classifier.ClassifierFlags,
        {**FINETUNE_FLAGS, "task_name": "tsv", "data_dir": "{}/tsv"},
        {
            **MODEL_FILES, "tsv/train.tsv": "table", "tsv/dev.tsv": "table", **FLAG_FILE,
        },
        {
            **FINETUNE_TEXTS, "task_name": ("x", "", "CoLA", "klue-ner"), "text_column": COLUMNS,
            "label_column": COLUMNS, "second_column": COLUMNS, "id_column": COLUMNS,
            "labels": ("good", "good,good", "good,,bad", "x,y"), "metrics": ("x", "f1,x"),
        },
    ),
    "run_classifier on JSON lines": Program(
        classifier.main,
        classifier.ClassifierFlags,
        {**FINETUNE_FLAGS, "task_name": "jsonl", "data_dir": "{}/tsv"},
        {"tsv/train.jsonl": "lines", "tsv/dev.jsonl": "lines"},
        {"text_column": ("nothing", "label.x"), "task_type": ("regression",)},
    ),
    "run_classifier on numbers": Program(
        classifier.main,
        classifier.ClassifierFlags,
        {
            **FINETUNE_FLAGS, "task_name": "jsonl", "data_dir": "{}/tsv", "label_column": "score",
            "task_type": "regression",
        },
        {"tsv/train.jsonl": "lines", "tsv/dev.jsonl": "lines"},
    ),
    "run_classifier on KLUE's files": Program(
        classifier.main,
        classifier.ClassifierFlags,
        {**FINETUNE_FLAGS, "task_name": "klue-sts", "data_dir": "{}/klue"},
        {
            "klue/klue-sts-v1.1_train.json": "json", "klue/klue-sts-v1.1_dev.json": "json",
        },
    ),
    "run_classifier --do_predict": Program(
        classifier.main,
        classifier.ClassifierFlags,
        {"output_dir": "{}/tuned", "data_dir": "{}/tsv", "do_predict": True, "xla": "off"},
        {
            "tuned/finetuning.json": "settings", "tuned/bert_config.json": "config",
            "tuned/vocab.txt": "vocabulary", "tuned/tokenizer_config.json": "tokenizer",
            "tuned/model.ckpt-1.index": "index", "tsv/test.tsv": "table",
        },
        {"task_name": ("jsonl", "nsmc"), "predict_split": ("x", "dev ")},
    ),
    "run_ner": Program(
        ner.main,
        ner.NerFlags,
        {**FINETUNE_FLAGS, "task_name": "conll", "data_dir": "{}/conll"},
        {**MODEL_FILES, "conll/train.txt": "tags", "conll/dev.txt": "tags", **FLAG_FILE},
        {
            **FINETUNE_TEXTS, "task_name": ("x", "", "nsmc"),
            "labels": ("X", "O,O", "B-", "B-X,,O", "O,B-Z"),
        },
    ),
    "run_ner on KLUE's files": Program(
        ner.main,
        ner.NerFlags,
        {**FINETUNE_FLAGS, "task_name": "klue-ner", "data_dir": "{}/klue"},
        {"klue/klue-ner-v1.1_train.tsv": "tags", "klue/klue-ner-v1.1_dev.tsv": "tags"},
    ),
    "run_squad": Program(
        squad.main,
        squad.SquadFlags,
        {
            **FINETUNE_FLAGS, "train_file": "{}/train.json", "predict_file": "{}/dev.json",
            "max_query_length": 5, "version_2_with_negative": True,
        },
        {**MODEL_FILES, "train.json": "questions", "dev.json": "questions", **FLAG_FILE},
        {
            **FINETUNE_TEXTS, "train_feature_file": ("{}/text.txt", "{}/model"),
            "predict_feature_file": ("{}/text.txt", "{}/model"), "export_dir": ("{}/x",),
            "max_query_length": ("13",),
        },
    ),
    "run_race": Program(
        race.main,
        race.RaceFlags,
        {**FINETUNE_FLAGS, "data_dir": "{}/race", "max_qa_length": 8},
        {
            **MODEL_FILES, "race/train/middle/0.txt": "json", "race/dev/high/1.txt": "json",
            **FLAG_FILE,
        },
        {**FINETUNE_TEXTS, "max_qa_length": ("14",), "high_only": ("x",)},
    ),
    "run_race on JSON lines": Program(
        race.main,
        race.RaceFlags,
        {**FINETUNE_FLAGS, "data_dir": "{}/race", "max_qa_length": 8, "task_name": "jsonl"},
        {"race/train.jsonl": "lines", "race/dev.jsonl": "lines"},
    ),
    "extract_features": Program(
        extract_features.main,
        extract_features.ExtractFeaturesFlags,
        {
            **MODEL_FLAGS, "input_file": "{}/sentences.txt", "output_file": "{}/out.jsonl",
            "max_seq_length": 16, "layers": "-1",
        },
        {**MODEL_FILES, "sentences.txt": "sentences", **FLAG_FILE},
        {"layers": NO_LAYERS, "pooling": ("mean",), "output_file": ("{}/model", "{}/text.txt/a")},
    ),
    "fill_masks": Program(
        fill_masks.main,
        fill_masks.FillMasksFlags,
        {"model_dir": "{}/model", "text": "the [MASK]"},
        {**MODEL_FILES, **FLAG_FILE},
        {"text": ("the", "[MASK]|", "[MASK]" * 99), "model_dir": ("{}/none", "{}/text.txt")},
    ),
    "benchmark_plan": Program(
        benchmark_plan.main,
        benchmark_plan.PlanFlags,
        {
            "benchmark": "glue", "model": "{}/model", "data_dir": "{}/glue",
            "output_dir": "{}/out",
        },
        {"model/bert_config.json": "there", "glue/CoLA/dev.tsv": "there", **FLAG_FILE},
        {"model": ("{}/none", "{}/tsv", "{}/text.txt"), "data_dir": ("{}/none", "{}/text.txt")},
    ),
    "benchmark_table": Program(
        benchmark_table.main,
        benchmark_table.TableFlags,
        {"benchmark": "glue", "output_dir": "{}/results"},
        {
            "results/cola/eval_results.txt": "results", "results/rte/seeds.tsv": "seeds",
            **FLAG_FILE,
        },
        {"output_dir": ("{}/none", "{}/text.txt", "{}/model")},
    ),
}  # fmt: skip


# === Damage: (random numbers, bytes) -> what it is, the new bytes, whether the run must fail ===


def make_folder(path):
    os.makedirs(path)


def nothing(path):
    """Leaves the file away."""


def lost(draw, old):
    yield "missing", nothing, True
    yield "a folder", make_folder, True


def not_text(draw, old):
    yield "random bytes", b"\xff" + draw.randbytes(draw.randrange(1, 400)), True
    # JSON may be UTF-16.
    yield "UTF-16", old.decode().encode("utf-16"), not old.startswith((b"{", b"["))
    place = draw.randrange(len(old))
    yield "a byte that is no UTF-8", old[:place] + b"\xff" + old[place:], True


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
    yield "a small table", json.dumps({**config, "vocab_size": 7}).encode(), True


def wrong_pieces(draw, old):
    lines = old.decode().split("\n")
    for special in ("[UNK]", "[CLS]", "[SEP]", "[MASK]"):
        yield f"no {special}", old.replace(special.encode(), b"x"), True
    place = draw.randrange(len(lines) - 1)
    yield "a blank line", "\n".join([*lines[:place], "", *lines[place:]]).encode(), True
    yield "a piece twice", "\n".join([*lines[: place + 1], *lines[place:]]).encode(), True
    yield "too many pieces", old + b"".join(b"p%d\n" % i for i in range(99)), False


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


def wrong_numbers(draw, old):
    for value in ("x", "", "nan nan", "0.5 = 1", "\0", "1" * 5000 + "x"):
        yield f"a number {value[:9]!r}", old.replace(b"0.5", value.encode()), True
    yield "an odd name", old.replace(b"eval_", b"evil_"), True


def wrong_flags(draw, old):
    yield "an unknown flag", b"--nonsense=1\n", True
    yield "no flag", b"nonsense\n", True
    yield "a bad value", b"--random_seed=x\n--benchmark=x\n", True
    for name in (b"output_dir", b"output_file", b"model_dir", b"input_file"):
        yield "a zero byte", b"--%s=a\0b" % name, True


JSON = (lost, not_text, empty, broken_json)
DAMAGE = {
    "config": (*JSON, odd_json, wrong_sizes),
    "tokenizer": (*JSON, odd_json, wrong_switches),
    "json": (*JSON, odd_json),
    "questions": (*JSON, odd_json, odd_json, odd_json),
    "settings": (*JSON, odd_json, odd_json),
    "sidecar": (cut, odd_json, odd_json),
    "vocabulary": (lost, not_text, empty, wrong_pieces, cut),
    "text": (lost, empty, cut),
    "sentences": (lost, cut),
    "lines": (lost, not_text, empty, odd_lines, odd_lines, cut, changed_lines),
    "table": (lost, not_text, empty, cut, changed_lines, wrong_columns),
    "tags": (lost, not_text, empty, cut, changed_lines, changed_lines),
    "records": (lost, empty, wrong_records),
    "index": (lost, empty, wrong_index),
    "tensors": (lost, empty, wrong_tensors),
    "results": (not_text, wrong_numbers, cut, changed_lines),
    "seeds": (not_text, wrong_numbers, cut, changed_lines),
    "flags": (lost, not_text, wrong_flags),
    "there": (lost,),
}

# Damage that the program takes in its stride, or that its good flags do not show.
TAKEN = {
    ("create_pretraining_data", "text.txt", "empty"),  # the work finds no sentence
    ("benchmark_plan", "model/bert_config.json", "a folder"),
    ("benchmark_plan", "glue/CoLA/dev.tsv", "a folder"),
    # Not all splits need be there.
    ("run_classifier", "tsv/dev.tsv", "missing"),
    ("run_classifier", "tsv/dev.tsv", "a folder"),
    ("run_classifier on JSON lines", "tsv/dev.jsonl", "missing"),
    ("run_classifier on JSON lines", "tsv/dev.jsonl", "a folder"),
    ("run_ner", "conll/dev.txt", "missing"),
    ("run_ner", "conll/dev.txt", "a folder"),
    ("run_classifier on numbers", "tsv/dev.jsonl", "missing"),
    ("run_classifier on numbers", "tsv/dev.jsonl", "a folder"),
    ("run_classifier --do_predict", "tsv/test.tsv", "missing"),
    ("run_classifier --do_predict", "tsv/test.tsv", "a folder"),
    ("run_race on JSON lines", "race/dev.jsonl", "missing"),
    ("run_race", "race/dev/high/1.txt", "missing"),
}


# === Drawing ===


def bad_value(draw, field):
    """A value that a flag does not take, whatever its program; None for a text."""
    kind, bounds = value_type(field), field.metadata["bounds"]
    if field.metadata["choices"]:
        return draw.choice(("nonsense", "", " ", "가", "none,none", "9" * 5000))
    if kind is bool:
        return draw.choice(("maybe", "2", "-1", "가", "truefalse"))
    if kind in (int, float):
        outside = [bounds[name] - 1 for name in ("least", "above") if name in bounds]
        outside += [bounds[name] + 1 for name in ("most", "below") if name in bounds]
        return draw.choice((*outside, "x", "1,5", "0x1g", "가", "nan", "9" * 5000, "", "1 2", "--"))
    return None


def bad_text(draw, program, field):
    """A text that a flag does not take."""
    name = field.name
    if name in program.texts and draw.random() < 0.7:
        return draw.choice(program.texts[name])
    if name.endswith(("_file", "_dir", "_checkpoint")) and name in program.flags:
        if name.startswith("output") and program.main is not benchmark_plan.main:
            return draw.choice(("{}/text.txt/x", "gs://bucket/x", "/proc/none/x"))
        return draw.choice(
            ("s3://bucket/x",)
            if name.startswith("output")
            else (
                "{}/none",
                "{}/text.txt/x",
                "s3://bucket/x",
                "{}/" + "x" * 300,
                "x" * 5000,
                "[",
                "\udcff",
            )
        )
    return "\udcff\udcfe"


def draw_case(name, seed):
    """The case of a program that a seed stands for."""
    draw, program = random.Random(f"{name} {seed}"), PROGRAMS[name]
    if draw.random() < 0.4:
        return draw_flag(draw, program)
    path = draw.choice(list(program.files))
    return path, draw.choice(DAMAGE[program.files[path]]), draw


def draw_flag(draw, program):
    fields = dataclasses.fields(program.flags_class)
    if draw.random() < 0.5:
        fields = [f for f in fields if f.name in program.texts or f.name in program.flags]
    field = draw.choice(fields)
    how = draw.random()
    if how < 0.04:
        return Case("an unknown flag", {}, (f"--{field.name}x=1",), about=(field.name,))
    if how < 0.07:
        return Case("no flag", {}, (draw.choice(("x", "--", "-", "---x", "가")),), must_fail=False)
    if field.metadata["required"] and how < 0.2:
        return Case(f"no {field.name}", {field.name: None}, about=(field.name,))
    value = bad_value(draw, field)
    if value is None:
        value = bad_text(draw, program, field)
    return Case(f"--{field.name}={str(value)[:40]!r}", {field.name: value})


def damaged(world, path, damage, draw):
    """The case of a file that was damaged."""
    found = list(damage(draw, (world / path).read_bytes()))
    what, content, must_fail = draw.choice(found)
    more = (f"--flagfile={world / path}",) if path.endswith(".flags") else ()
    return Case(f"{path}: {what}", {}, more, path, content, must_fail)


# === Running ===


@contextlib.contextmanager
def file_with(world, case):
    """The world with the case's file in it."""
    if case.path is None:
        yield
        return
    path = world / case.path
    kept = path.read_bytes()
    path.unlink()
    try:
        if callable(case.content):
            case.content(path)
        else:
            path.write_bytes(case.content)
        yield
    finally:
        if path.is_dir():
            path.rmdir()
        path.write_bytes(kept)


def run_case(world, name, seed):
    """Runs the case that a seed stands for.

    Returns:
        Whether it was refused, and what is wrong: None, or a text with the case in it.
    """
    case = draw_case(name, seed)
    if not isinstance(case, Case):
        case = damaged(world, *case)
    status, lines, wrong = run_program(world, name, case)
    if wrong is None and status == 1:
        wrong = what_is_wrong(case, lines)
    elif wrong is None and case.must_fail and not is_taken(name, case):
        wrong = f"it was not refused: status {status} {lines}"
    if wrong:
        wrong = f"{name}, seed {seed}, {case.what}: {wrong}"
    return status == 1, wrong


def is_taken(name, case):
    """Whether a run may go well nevertheless."""
    return (name, case.path, case.what.partition(": ")[2]) in TAKEN


def what_is_wrong(case, lines):
    """What is wrong with the lines of a run that was refused, or None."""
    if len(lines) != 1 or not lines[0].startswith("error: ") or len(lines[0]) > 1600:
        return f"not one line: {lines}"[:3000]
    if case.about and not any(each in lines[0] for each in case.about):
        return f"does not say what it is about: {lines[0]}"
    return None


def run_program(world, name, case):
    """Runs a program on a case.

    Returns:
        The exit status, or "started"; the lines on standard error that are neither progress nor
        warnings; a traceback or None.
    """
    program, argv = PROGRAMS[name], [name.split()[0]]
    for flag, value in {**program.flags, **case.flags}.items():
        if value is not None:
            argv.append(f"--{flag}={value}".replace("{}", str(world)))
    argv += case.more
    out, err = io.StringIO(), io.StringIO()
    status = trace = None
    with (
        file_with(world, case),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("always")
        try:
            status = program.main(argv)
        except Started:
            status = "started"
        except BaseException:
            trace = traceback.format_exc()
    shutil.rmtree(world / "out", ignore_errors=True)
    lines = [
        line
        for line in err.getvalue().replace("\r", "\n").split("\n")
        if line.strip() and not line.startswith(("warning: ", "left out, ")) and "%" not in line
    ]
    if "Traceback" in out.getvalue():
        trace = out.getvalue()
    return status, lines, trace
