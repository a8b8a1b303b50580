"""The programs of the bad-input tests: good flags and their files."""

import importlib
from typing import NamedTuple

from run_scripts.build_vocab import BuildVocabFlags
from run_scripts.classifier import ClassifierFlags
from run_scripts.conversion.adapt_checkpoint import AdaptFlags
from run_scripts.conversion.export_model import ExportFlags
from run_scripts.extract_features import ExtractFeaturesFlags
from run_scripts.flags.create_data import CreateDataFlags
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.ner import NerFlags
from run_scripts.plan import CorpusPlanFlags
from run_scripts.race import RaceFlags
from run_scripts.similarity import SimilarityFlags
from run_scripts.squad import SquadFlags
from run_scripts.tools.average_models import AverageFlags
from run_scripts.tools.check_devices.__main__ import CheckDevicesFlags
from run_scripts.tools.explore import ExploreFlags
from run_scripts.tools.fill_masks import FillMasksFlags
from run_scripts.tools.retrieval import RetrievalFlags
from run_scripts.tools.search import SearchFlags


class Program(NamedTuple):
    """A program with good flags."""

    main: object  # takes a command line, returns the exit status
    flags_class: type
    flags: dict  # flag -> value; "{}" is replaced by the folder of the good files
    files: dict  # file -> its kind, a key of `DAMAGE`


def program_of(flags_class, files, **flags):
    """The `Program` whose flags these are; its module is where the class is, or has its name."""
    module = importlib.import_module(flags_class.__module__.replace(".flags.", "."))
    return Program(module.main, flags_class, flags, files)


TOKENIZER_FILES = {"model/vocab.txt": "vocabulary", "model/tokenizer_config.json": "tokenizer"}
FLAG_FILE = {"job.flags": "flags"}
MODEL_FILES = {
    "model/bert_config.json": "config", **TOKENIZER_FILES, "model/model.ckpt-3.index": "index",
    "model/model.ckpt-3.data-00000-of-00001": "tensors",
}  # fmt: skip
MODEL_FLAGS = {
    "bert_config_file": "{}/model/bert_config.json",
    "tokenizer_dir": "{}/model",
    "init_checkpoint": "{}/model/model.ckpt-3",
}


def with_model(files=()):
    """The files beside a model's and a file of flags."""
    return {**MODEL_FILES, **dict(files), **FLAG_FILE}


TRAIN_FLAGS = {**MODEL_FLAGS, "output_dir": "{}/out", "do_train": True, "xla": "off"}
PRETRAIN_FLAGS = {
    **TRAIN_FLAGS, "num_train_steps": 2, "num_warmup_steps": 1, "train_batch_size": 2
}  # fmt: skip
FINETUNE_FLAGS = {
    **TRAIN_FLAGS, "do_eval": True, "train_step": 1, "max_seq_length": 16,
    "bucket_boundaries": "none",
}  # fmt: skip
LEARN_FLAGS = {"output_dir": "{}/out", "analyser": "none", "vocab_size": 1000}
TSV_LINES = {"tsv/train.jsonl": "lines", "tsv/dev.jsonl": "lines"}
PROGRAMS = {
    "build_vocab": program_of(
        BuildVocabFlags, {"text.txt": "text", **FLAG_FILE},
        input_file="{}/text.txt", **LEARN_FLAGS,
    ),
    "build_vocab on JSON lines": program_of(
        BuildVocabFlags, {"text.jsonl": "lines"},
        input_file="{}/text.jsonl", input_format="jsonl", **LEARN_FLAGS,
    ),
    "build_vocab --compare": program_of(BuildVocabFlags, TOKENIZER_FILES, compare="{}/model"),
    "create_pretraining_data": program_of(
        CreateDataFlags, {"text.txt": "text", **TOKENIZER_FILES, **FLAG_FILE},
        input_file="{}/text.txt", output_file="{}/out/a.tfrecord", num_workers=1,
        tokenizer_dir="{}/model", max_seq_length=16, dupe_factor=1,
    ),
    "run_pretraining": program_of(
        PretrainFlags, with_model({"part-0.tfrecord": "records", "part-0.json": "sidecar"}),
        **PRETRAIN_FLAGS, input_file="{}/part-0.tfrecord",
    ),
    "run_pretraining, masks drawn": program_of(
        PretrainFlags, {"unmasked/part-0.tfrecord": "records", "unmasked/part-0.json": "sidecar"},
        **PRETRAIN_FLAGS, input_file="{}/unmasked/part-0.tfrecord",
    ),
    "run_classifier": program_of(
        ClassifierFlags, with_model({"tsv/train.tsv": "table", "tsv/dev.tsv": "table"}),
        **FINETUNE_FLAGS, task_name="tsv", data_dir="{}/tsv",
    ),
    "run_classifier on JSON lines": program_of(
        ClassifierFlags, TSV_LINES, **FINETUNE_FLAGS, task_name="jsonl", data_dir="{}/tsv"
    ),
    "run_classifier on numbers": program_of(
        ClassifierFlags, TSV_LINES,
        **FINETUNE_FLAGS, task_name="jsonl", data_dir="{}/tsv", label_column="score",
        task_type="regression",
    ),
    "run_classifier on KLUE's files": program_of(
        ClassifierFlags,
        {"klue/klue-sts-v1.1_train.json": "json", "klue/klue-sts-v1.1_dev.json": "json"},
        **FINETUNE_FLAGS, task_name="klue-sts", data_dir="{}/klue",
    ),
    "run_classifier --do_predict": program_of(
        ClassifierFlags, {
            "tuned/finetuning.json": "settings", "tuned/bert_config.json": "config",
            "tuned/vocab.txt": "vocabulary", "tuned/tokenizer_config.json": "tokenizer",
            "tuned/model.ckpt-1.index": "index", "tsv/test.tsv": "table",
        },
        output_dir="{}/tuned", data_dir="{}/tsv", do_predict=True, xla="off",
    ),
    "run_ner": program_of(
        NerFlags, with_model({"conll/train.txt": "tags", "conll/dev.txt": "tags"}),
        **FINETUNE_FLAGS, task_name="conll", data_dir="{}/conll",
    ),
    "run_ner on KLUE's files": program_of(
        NerFlags, {"klue/klue-ner-v1.1_train.tsv": "tags", "klue/klue-ner-v1.1_dev.tsv": "tags"},
        **FINETUNE_FLAGS, task_name="klue-ner", data_dir="{}/klue",
    ),
    "run_squad": program_of(
        SquadFlags, with_model({"train.json": "questions", "dev.json": "questions"}),
        **FINETUNE_FLAGS, train_file="{}/train.json", predict_file="{}/dev.json",
        max_query_length=5, version_2_with_negative=True,
    ),
    "run_race": program_of(
        RaceFlags, with_model({"race/train/middle/0.txt": "json", "race/dev/high/1.txt": "json"}),
        **FINETUNE_FLAGS, data_dir="{}/race", max_qa_length=8,
    ),
    "run_race on JSON lines": program_of(
        RaceFlags, {"race/train.jsonl": "lines", "race/dev.jsonl": "lines"},
        **FINETUNE_FLAGS, data_dir="{}/race", max_qa_length=8, task_name="jsonl",
    ),
    "run_similarity": program_of(
        SimilarityFlags, with_model({"pairs/train.tsv": "table", "pairs/dev.tsv": "table"}),
        **FINETUNE_FLAGS, task_name="tsv", data_dir="{}/pairs",
    ),
    "run_similarity on JSON lines": program_of(
        SimilarityFlags, {"pairs/train.jsonl": "lines", "pairs/dev.jsonl": "lines"},
        **FINETUNE_FLAGS, train_file="{}/pairs/train.jsonl", dev_file="{}/pairs/dev.jsonl",
    ),
    "search": program_of(
        SearchFlags, with_model({"tsv/train.tsv": "table"}),
        model_dir="{}/model", corpus="{}/tsv/train.tsv", query="the film",
    ),
    "search in lines": program_of(
        SearchFlags, {"text.txt": "text"},
        model_dir="{}/model", corpus="{}/text.txt", query="the film",
    ),
    "retrieval": program_of(
        RetrievalFlags, with_model({"dev.json": "questions"}),
        model_dir="{}/model", questions="{}/dev.json", max_seq_length=16,
    ),
    "retrieval of a collection": program_of(
        RetrievalFlags, {
            "beir/queries.jsonl": "lines", "beir/corpus.jsonl": "lines",
            "beir/qrels/test.tsv": "table",
        },
        model_dir="{}/model", data_dir="{}/beir", max_seq_length=16,
    ),
    "extract_features": program_of(
        ExtractFeaturesFlags, with_model({"sentences.txt": "sentences"}),
        **MODEL_FLAGS, input_file="{}/sentences.txt", output_file="{}/out.jsonl",
        max_seq_length=16, layers="-1",
    ),
    "adapt_checkpoint": program_of(
        AdaptFlags, with_model({"words.txt": "words"}),
        model_dir="{}/model", output_dir="{}/out", add_tokens="{}/words.txt",
        max_position_embeddings=40,
    ),
    "average_models": program_of(
        AverageFlags, with_model(), models="{}/model,{}/model/model.ckpt-3", output_dir="{}/out"
    ),
    "export_model": program_of(
        ExportFlags, with_model(),
        model_dir="{}/model", output_dir="{}/out", format="huggingface",
        init_checkpoint="{}/model/model.ckpt-3", max_shard_size="1MB", card_file="{}/text.txt",
        max_size="9MB",
    ),
    "fill_masks": program_of(
        FillMasksFlags, with_model(), model_dir="{}/model", text="the [MASK]"
    ),
    "explore": program_of(
        ExploreFlags, with_model(), model_dir="{}/model", tokenizers="{}/model", port=0
    ),
    "plan": program_of(CorpusPlanFlags, FLAG_FILE, corpus_gb="1", model="bert_base"),
    "plan of models": program_of(
        CorpusPlanFlags, {"model/bert_config.json": "config alone", **FLAG_FILE},
        config_file="{}/model/bert_config.json", lengths="16",
    ),
}  # fmt: skip

# Every program's flags; the checks of check_devices begin at once, whatever its flag is.
FLAG_CLASSES = (
    *dict.fromkeys(each.flags_class for each in PROGRAMS.values()),
    CheckDevicesFlags,
)
