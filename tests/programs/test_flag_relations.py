"""Flags that need or exclude other flags, are refused or have no effect."""

import dataclasses

import pytest

from bert_common.errors import InputError
from run_scripts.build_vocab import BuildVocabFlags
from run_scripts.classifier import ClassifierFlags
from run_scripts.conversion.adapt_checkpoint import AdaptFlags
from run_scripts.extract_features import ExtractFeaturesFlags
from run_scripts.flags import groups
from run_scripts.flags.create_data import CreateDataFlags
from run_scripts.flags.declaration import PerModel, flag
from run_scripts.flags.parser import help_text, parse, run_program
from run_scripts.flags.pretrain import PretrainFlags
from run_scripts.ner import NerFlags
from run_scripts.plan import CorpusPlanFlags
from run_scripts.race import RaceFlags
from run_scripts.squad import SquadFlags
from run_scripts.tools.retrieval import RetrievalFlags
from run_scripts.tools.search import SearchFlags
from tests.support.bad_inputs.bad_input_programs import FLAG_CLASSES


@dataclasses.dataclass(frozen=True)
class CopyFlags:
    """Copies a file."""

    source: str = flag(None, "What to copy.")
    list: str = flag(None, "What to copy, in a file.")
    target: str = flag(None, "Where to.", needs=("source or list",))
    way: str = flag("fast", "How.", choices=("fast", "slow"), not_with=("again",))
    pause: float = flag(None, "How long to wait.", least=0, needs=("target", "way=slow"))
    again: bool = flag(None, "Once more.")
    times: int = flag(PerModel(2), "How often.", least=0, not_with=("again", "way=slow"))
    tape: bool = flag(False, "Must be off: there are no tapes.", refused=True)
    colour: str = groups.COMPATIBILITY.unused()

    @classmethod
    def as_meant(cls, given):
        """A list is copied slowly."""
        return {**given, "way": "slow"} if given["list"] else given


REFUSED = {
    "--target=b": "--target needs --source or --list. Received: --target=b without either",
    "--source=a --target=b --pause=0": "--pause needs --way=slow. Received: --pause=0.0 without it",
    "--way=slow --pause=1": "--pause needs --target. Received: --pause=1.0 without it",
    "--again --way=slow": "--way and --again: only one may be given. Received: --way=slow and --ag",
    "--again --times=0": "--times and --again: only one may be given. Received: --times=0 and --ag",
    "--way=slow --times=2": "--times and --way=slow: only one may be given. Received: --times=2 an",
    "--tape": "--tape must be off: there are no tapes. Received: --tape",
}


@pytest.mark.parametrize("flags", REFUSED)
def test_refused(flags):
    with pytest.raises(InputError) as caught:
        parse(CopyFlags, ["copy", *flags.split()])
    assert str(caught.value).startswith(REFUSED[flags])


def test_accepted():
    for flags in (
        "--list=a --target=b --pause=1",  # as it is meant
        "--way=fast --again",  # its default
        "--noagain --times=3 --way=fast",
        "--target= --notape",
    ):
        assert parse(CopyFlags, ["copy", *flags.split()])


def test_help_says_it():
    words = " ".join(help_text(CopyFlags, "copy").split())
    assert "Where to. Needs --source or --list. --" in words
    assert "How long to wait. Needs --target and --way=slow. --" in words
    assert "How often. Not with --again or --way=slow. --" in words


def test_flags_without_effect_are_named(capsys):
    assert run_program(print, CopyFlags, ["copy", "--colour=red"]) == 0
    assert capsys.readouterr().out.startswith("note: --colour: without effect here\nCopyFlags(")
    assert run_program(print, CopyFlags, ["copy"]) == 0
    assert capsys.readouterr().out.startswith("CopyFlags(")


@pytest.mark.parametrize("flags_class", FLAG_CLASSES)
def test_declarations_name_flags_and_their_values(flags_class):
    fields = {field.name: field for field in dataclasses.fields(flags_class)}
    for field in fields.values():
        for other in (*field.metadata["needs"], *field.metadata["not_with"]):
            for condition in other.split(" or "):
                name, has_value, value = condition.partition("=")
                assert not has_value or value in fields[name].metadata["choices"]


# A program's flags -> rows of what is given beside the required flags, the flags that are tried
# one by one beside it, and what each of them needs or excludes; nothing: what it must be.
DECLARED = {
    BuildVocabFlags: (
        ("", "text=a", "compare"),
        ("--compare=a", "input_file=a output_dir=a do_lower_case", "compare"),
        ("--compare=a", "normalization=NFKC unknown=bytes", "compare"),
    ),
    CreateDataFlags: (
        ("", "spark_master=yarn", "engine=spark"),
        ("--engine=spark", "num_workers=2", "engine=spark"),
    ),
    PretrainFlags: (
        ("--tokenizer_dir=a", "vocab_file=a", "tokenizer_dir"),
        ("", "generator_dir=a generator_size=0.5", "objective=rtd"),
        ("", "eval_every_steps=2", "eval_input_file"),
        ("", "distillation=minilm distillation_weight=0.3", "teacher_dir"),
        ("", "distillation_temperature=3", "teacher_dir"),
        (
            "--teacher_dir=a --distillation=minilm",
            "distillation_temperature=3",
            "distillation=logits",
        ),
        ("", "distillation_relations=qk relation_heads=4 teacher_layer=4", "distillation=minilm"),
        ("", "masked_lm_budget=0.15 init_from_group0 use_tpu", ""),
    ),
    ExtractFeaturesFlags: (
        ("", "use_tpu", ""),
        ("--pooling=none", "projector_dir=a word_embeddings", "pooling=none"),
    ),
    ClassifierFlags: (
        ("", "predict_file=a", "do_predict"),
        ("--do_predict --predict_split=dev", "predict_file=a", "predict_split"),
        ("--task_type=regression", "labels=1,5", "task_type=regression"),
        ("", "threshold_to_export=0", "export_dir"),
        ("--num_seeds=2", "export_dir=a", "num_seeds"),
        ("--train_step=2", "num_train_epochs=3", "train_step"),
        ("--warmup_step=0", "warmup_proportion=0.1", "warmup_step"),
        ("", "patience=2 early_stopping=2", "eval_every_steps"),
        ("--eval_every_steps=2 --patience=2", "early_stopping=2", "patience"),
        ("", "distillation_temperature=3", "teacher_dir"),
        ("", "albert_hub_module_handle=https://tfhub.dev", ""),
    ),
    NerFlags: (("", "predict_file=a", "do_predict"),),
    SquadFlags: (
        ("", "export_dir=a", ""),
        ("--train_step=2", "num_train_epochs=3", "train_step"),
    ),
    RaceFlags: (
        ("--middle_only", "high_only", "middle_only"),
        ("--train_step=2", "num_train_epochs=3", "train_step"),
        ("", "early_stopping=3", "eval_every_steps"),
    ),
    AdaptFlags: (
        ("--add_tokens=a", "tokenizer_dir=a", "add_tokens"),
        ("", "new_rows=random", "tokenizer_dir or --add_tokens"),
        ("", "new_positions=repeat", "max_position_embeddings"),
    ),
    SearchFlags: (("--method=bm25", "approximate", "method=vectors"),),
    RetrievalFlags: (("", "split=dev", "data_dir"), ("", "articles=0:1", "questions")),
    CorpusPlanFlags: (
        ("--corpus_gb=1", "config_file=a lengths=64 batch_size=64", "corpus_gb"),
        ("--corpus_gb=1", "dupe_factor=5", "masking=static"),
        ("", "dupe_factor=5 model=bert_large gpus=4 gpu=h100 utilisation=0.5", "corpus_gb"),
        ("", "num_passes=5 cores=5 masking=static compression=GZIP", "corpus_gb"),
        ("", "vocab_size=9", "corpus_gb or --config_file"),
    ),
}


@pytest.mark.parametrize("flags_class", DECLARED)
def test_declared(flags_class):
    names = [f.name for f in dataclasses.fields(flags_class) if f.metadata["required"]]
    for beside, tried, other in DECLARED[flags_class]:
        for flag_tried in tried.split():
            given = [f"--{flag_tried}", *beside.split()]
            given += [f"--{name}=x" for name in names if f"--{name}=" not in " ".join(given)]
            name = flag_tried.partition("=")[0]
            with pytest.raises(InputError) as caught:
                parse(flags_class, ["program", *given])
            ways = f"--{name} needs --{other}. ", f"--{name} and --{other}: only one may be given. "
            assert str(caught.value).startswith(ways if other else f"--{name} must be "), given
            assert "Received: --" in str(caught.value)
