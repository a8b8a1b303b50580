"""The programs of the bad-input tests: good flags and their files."""

from typing import NamedTuple

from run_scripts import (
    build_vocab,
    classifier,
    create_data,
    extract_features,
    ner,
    plan,
    pretrain,
    race,
    similarity,
    squad,
)
from run_scripts.conversion import adapt_checkpoint, export_model
from run_scripts.flags.create_data import CreateDataFlags
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.tools import average_models, explore, fill_masks, retrieval, search
from run_scripts.tools.check_devices.__main__ import CheckDevicesFlags


class Program(NamedTuple):
    """A program with good flags."""

    main: object  # takes a command line, returns the exit status
    flags_class: type
    flags: dict  # flag -> value; "{}" is replaced by the folder of the good files
    files: dict  # file -> its kind, a key of `DAMAGE`


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
PRETRAIN_FLAGS = {
    **MODEL_FLAGS, "output_dir": "{}/out", "do_train": True, "num_train_steps": 2,
    "num_warmup_steps": 1, "train_batch_size": 2, "xla": "off",
}  # fmt: skip
FINETUNE_FLAGS = {
    **MODEL_FLAGS, "output_dir": "{}/out", "do_train": True, "do_eval": True, "train_step": 1,
    "xla": "off", "max_seq_length": 16, "bucket_boundaries": "none",
}  # fmt: skip
PROGRAMS = {
    "build_vocab": Program(
        build_vocab.main, build_vocab.BuildVocabFlags,
        {
            "input_file": "{}/text.txt", "output_dir": "{}/out", "analyser": "none",
            "vocab_size": 1000,
        },
        {"text.txt": "text", **FLAG_FILE},
    ),
    "build_vocab on JSON lines": Program(
        build_vocab.main, build_vocab.BuildVocabFlags,
        {
            "input_file": "{}/text.jsonl", "input_format": "jsonl", "output_dir": "{}/out",
            "analyser": "none", "vocab_size": 1000,
        },
        {"text.jsonl": "lines"},
    ),
    "build_vocab --compare": Program(
        build_vocab.main, build_vocab.BuildVocabFlags,
        {"compare": "{}/model"},
        {"model/vocab.txt": "vocabulary", "model/tokenizer_config.json": "tokenizer"},
    ),
    "create_pretraining_data": Program(
        create_data.main, CreateDataFlags,
        {
            "input_file": "{}/text.txt", "output_file": "{}/out/a.tfrecord", "num_workers": 1,
            "tokenizer_dir": "{}/model", "max_seq_length": 16, "dupe_factor": 1,
        },
        {
            "text.txt": "text", "model/vocab.txt": "vocabulary",
            "model/tokenizer_config.json": "tokenizer", **FLAG_FILE,
        },
    ),
    "run_pretraining": Program(
        pretrain.main, PretrainFlags,
        {**PRETRAIN_FLAGS, "input_file": "{}/part-0.tfrecord"},
        {**MODEL_FILES, "part-0.tfrecord": "records", "part-0.json": "sidecar", **FLAG_FILE},
    ),
    "run_pretraining, masks drawn": Program(
        pretrain.main, PretrainFlags,
        {**PRETRAIN_FLAGS, "input_file": "{}/unmasked/part-0.tfrecord"},
        {"unmasked/part-0.tfrecord": "records", "unmasked/part-0.json": "sidecar"},
    ),
    "run_classifier": Program(
        classifier.main, classifier.ClassifierFlags,
        {**FINETUNE_FLAGS, "task_name": "tsv", "data_dir": "{}/tsv"},
        {**MODEL_FILES, "tsv/train.tsv": "table", "tsv/dev.tsv": "table", **FLAG_FILE},
    ),
    "run_classifier on JSON lines": Program(
        classifier.main, classifier.ClassifierFlags,
        {**FINETUNE_FLAGS, "task_name": "jsonl", "data_dir": "{}/tsv"},
        {"tsv/train.jsonl": "lines", "tsv/dev.jsonl": "lines"},
    ),
    "run_classifier on numbers": Program(
        classifier.main, classifier.ClassifierFlags,
        {
            **FINETUNE_FLAGS, "task_name": "jsonl", "data_dir": "{}/tsv", "label_column": "score",
            "task_type": "regression",
        },
        {"tsv/train.jsonl": "lines", "tsv/dev.jsonl": "lines"},
    ),
    "run_classifier on KLUE's files": Program(
        classifier.main, classifier.ClassifierFlags,
        {**FINETUNE_FLAGS, "task_name": "klue-sts", "data_dir": "{}/klue"},
        {"klue/klue-sts-v1.1_train.json": "json", "klue/klue-sts-v1.1_dev.json": "json"},
    ),
    "run_classifier --do_predict": Program(
        classifier.main, classifier.ClassifierFlags,
        {"output_dir": "{}/tuned", "data_dir": "{}/tsv", "do_predict": True, "xla": "off"},
        {
            "tuned/finetuning.json": "settings", "tuned/bert_config.json": "config",
            "tuned/vocab.txt": "vocabulary", "tuned/tokenizer_config.json": "tokenizer",
            "tuned/model.ckpt-1.index": "index", "tsv/test.tsv": "table",
        },
    ),
    "run_ner": Program(
        ner.main, ner.NerFlags,
        {**FINETUNE_FLAGS, "task_name": "conll", "data_dir": "{}/conll"},
        {**MODEL_FILES, "conll/train.txt": "tags", "conll/dev.txt": "tags", **FLAG_FILE},
    ),
    "run_ner on KLUE's files": Program(
        ner.main, ner.NerFlags,
        {**FINETUNE_FLAGS, "task_name": "klue-ner", "data_dir": "{}/klue"},
        {"klue/klue-ner-v1.1_train.tsv": "tags", "klue/klue-ner-v1.1_dev.tsv": "tags"},
    ),
    "run_squad": Program(
        squad.main, squad.SquadFlags,
        {
            **FINETUNE_FLAGS, "train_file": "{}/train.json", "predict_file": "{}/dev.json",
            "max_query_length": 5, "version_2_with_negative": True,
        },
        {**MODEL_FILES, "train.json": "questions", "dev.json": "questions", **FLAG_FILE},
    ),
    "run_race": Program(
        race.main, race.RaceFlags,
        {**FINETUNE_FLAGS, "data_dir": "{}/race", "max_qa_length": 8},
        {
            **MODEL_FILES, "race/train/middle/0.txt": "json", "race/dev/high/1.txt": "json",
            **FLAG_FILE,
        },
    ),
    "run_race on JSON lines": Program(
        race.main, race.RaceFlags,
        {**FINETUNE_FLAGS, "data_dir": "{}/race", "max_qa_length": 8, "task_name": "jsonl"},
        {"race/train.jsonl": "lines", "race/dev.jsonl": "lines"},
    ),
    "run_similarity": Program(
        similarity.main, similarity.SimilarityFlags,
        {**FINETUNE_FLAGS, "task_name": "tsv", "data_dir": "{}/pairs"},
        {**MODEL_FILES, "pairs/train.tsv": "table", "pairs/dev.tsv": "table", **FLAG_FILE},
    ),
    "run_similarity on JSON lines": Program(
        similarity.main, similarity.SimilarityFlags,
        {**FINETUNE_FLAGS, "train_file": "{}/pairs/train.jsonl", "dev_file": "{}/pairs/dev.jsonl"},
        {"pairs/train.jsonl": "lines", "pairs/dev.jsonl": "lines"},
    ),
    "search": Program(
        search.main, search.SearchFlags,
        {"model_dir": "{}/model", "corpus": "{}/tsv/train.tsv", "query": "the film"},
        {**MODEL_FILES, "tsv/train.tsv": "table", **FLAG_FILE},
    ),
    "search in lines": Program(
        search.main, search.SearchFlags,
        {"model_dir": "{}/model", "corpus": "{}/text.txt", "query": "the film"},
        {"text.txt": "text"},
    ),
    "retrieval": Program(
        retrieval.main, retrieval.RetrievalFlags,
        {"model_dir": "{}/model", "questions": "{}/dev.json", "max_seq_length": 16},
        {**MODEL_FILES, "dev.json": "questions", **FLAG_FILE},
    ),
    "retrieval of a collection": Program(
        retrieval.main, retrieval.RetrievalFlags,
        {"model_dir": "{}/model", "data_dir": "{}/beir", "max_seq_length": 16},
        {
            "beir/queries.jsonl": "lines", "beir/corpus.jsonl": "lines",
            "beir/qrels/test.tsv": "table",
        },
    ),
    "extract_features": Program(
        extract_features.main, extract_features.ExtractFeaturesFlags,
        {
            **MODEL_FLAGS, "input_file": "{}/sentences.txt", "output_file": "{}/out.jsonl",
            "max_seq_length": 16, "layers": "-1",
        },
        {**MODEL_FILES, "sentences.txt": "sentences", **FLAG_FILE},
    ),
    "adapt_checkpoint": Program(
        adapt_checkpoint.main, adapt_checkpoint.AdaptFlags,
        {
            "model_dir": "{}/model", "output_dir": "{}/out", "add_tokens": "{}/words.txt",
            "max_position_embeddings": 40,
        },
        {**MODEL_FILES, "words.txt": "words", **FLAG_FILE},
    ),
    "average_models": Program(
        average_models.main, average_models.AverageFlags,
        {"models": "{}/model,{}/model/model.ckpt-3", "output_dir": "{}/out"},
        {**MODEL_FILES, **FLAG_FILE},
    ),
    "export_model": Program(
        export_model.main, export_model.ExportFlags,
        {
            "model_dir": "{}/model", "output_dir": "{}/out", "format": "huggingface",
            "init_checkpoint": "{}/model/model.ckpt-3", "max_shard_size": "1MB",
            "card_file": "{}/text.txt", "max_size": "9MB",
        },
        {**MODEL_FILES, **FLAG_FILE},
    ),
    "fill_masks": Program(
        fill_masks.main, fill_masks.FillMasksFlags,
        {"model_dir": "{}/model", "text": "the [MASK]"},
        {**MODEL_FILES, **FLAG_FILE},
    ),
    "explore": Program(
        explore.main, explore.ExploreFlags,
        {"model_dir": "{}/model", "tokenizers": "{}/model", "port": 0},
        {**MODEL_FILES, **FLAG_FILE},
    ),
    "plan": Program(
        plan.main, plan.CorpusPlanFlags,
        {"corpus_gb": "1", "model": "bert_base"},
        FLAG_FILE,
    ),
    "plan of models": Program(
        plan.main, plan.CorpusPlanFlags,
        {"config_file": "{}/model/bert_config.json", "lengths": "16"},
        {"model/bert_config.json": "config alone", **FLAG_FILE},
    ),
}  # fmt: skip

# Every program's flags; the checks of check_devices begin at once, whatever its flag is.
FLAG_CLASSES = (
    *dict.fromkeys(each.flags_class for each in PROGRAMS.values()),
    CheckDevicesFlags,
)
