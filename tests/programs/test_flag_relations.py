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


@pytest.mark.parametrize(
    "flags",
    (
        "--list=a --target=b --pause=1",  # as it is meant
        "--way=fast --again",  # its default
        "--noagain --times=3 --way=fast",
        "--target= --notape",
    ),
)
def test_accepted(flags):
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


# A program's flags -> a command line beside the required ones -> the flag that it is about, and
# what this needs or excludes.
DECLARED = {
    BuildVocabFlags: {
        "--text=a": ("text", "compare"),
        "--compare=a --input_file=a": ("input_file", "compare"),
        "--compare=a --output_dir=a": ("output_dir", "compare"),
        "--compare=a --do_lower_case": ("do_lower_case", "compare"),
        "--compare=a --normalization=NFKC": ("normalization", "compare"),
        "--compare=a --unknown=bytes": ("unknown", "compare"),
    },
    CreateDataFlags: {
        "--spark_master=yarn": ("spark_master", "engine=spark"),
        "--engine=spark --num_workers=2": ("num_workers", "engine=spark"),
    },
    PretrainFlags: {
        "--vocab_file=a --tokenizer_dir=a": ("vocab_file", "tokenizer_dir"),
        "--generator_dir=a": ("generator_dir", "objective=rtd"),
        "--generator_size=0.5": ("generator_size", "objective=rtd"),
        "--eval_every_steps=2": ("eval_every_steps", "eval_input_file"),
        "--distillation=minilm": ("distillation", "teacher_dir"),
        "--distillation_weight=0.3": ("distillation_weight", "teacher_dir"),
        "--distillation_temperature=3": ("distillation_temperature", "teacher_dir"),
        "--distillation_temperature=3 --teacher_dir=a --distillation=minilm": (
            "distillation_temperature", "distillation=logits",
        ),
        "--distillation_relations=qk": ("distillation_relations", "distillation=minilm"),
        "--relation_heads=4": ("relation_heads", "distillation=minilm"),
        "--teacher_layer=4": ("teacher_layer", "distillation=minilm"),
        "--masked_lm_budget=0.15": ("masked_lm_budget", ""),
        "--init_from_group0": ("init_from_group0", ""),
        "--use_tpu": ("use_tpu", ""),
    },
    ExtractFeaturesFlags: {
        "--use_tpu": ("use_tpu", ""),
        "--projector_dir=a --pooling=none": ("projector_dir", "pooling=none"),
        "--word_embeddings --pooling=none": ("word_embeddings", "pooling=none"),
    },
    ClassifierFlags: {
        "--predict_file=a": ("predict_file", "do_predict"),
        "--predict_file=a --do_predict --predict_split=dev": ("predict_file", "predict_split"),
        "--labels=1,5 --task_type=regression": ("labels", "task_type=regression"),
        "--threshold_to_export=0": ("threshold_to_export", "export_dir"),
        "--export_dir=a --num_seeds=2": ("export_dir", "num_seeds"),
        "--num_train_epochs=3 --train_step=2": ("num_train_epochs", "train_step"),
        "--warmup_proportion=0.1 --warmup_step=0": ("warmup_proportion", "warmup_step"),
        "--patience=2": ("patience", "eval_every_steps"),
        "--early_stopping=2": ("early_stopping", "eval_every_steps"),
        "--early_stopping=2 --eval_every_steps=2 --patience=2": ("early_stopping", "patience"),
        "--distillation_temperature=3": ("distillation_temperature", "teacher_dir"),
        "--albert_hub_module_handle=https://tfhub.dev": ("albert_hub_module_handle", ""),
    },
    NerFlags: {"--predict_file=a": ("predict_file", "do_predict")},
    SquadFlags: {
        "--export_dir=a": ("export_dir", ""),
        "--num_train_epochs=3 --train_step=2": ("num_train_epochs", "train_step"),
    },
    RaceFlags: {
        "--high_only --middle_only": ("high_only", "middle_only"),
        "--num_train_epochs=3 --train_step=2": ("num_train_epochs", "train_step"),
        "--early_stopping=3": ("early_stopping", "eval_every_steps"),
    },
    AdaptFlags: {
        "--tokenizer_dir=a --add_tokens=a": ("tokenizer_dir", "add_tokens"),
        "--new_rows=random": ("new_rows", "tokenizer_dir or --add_tokens"),
        "--new_positions=repeat": ("new_positions", "max_position_embeddings"),
    },
    SearchFlags: {"--approximate --method=bm25": ("approximate", "method=vectors")},
    RetrievalFlags: {
        "--split=dev": ("split", "data_dir"),
        "--articles=0:1": ("articles", "questions"),
    },
    CorpusPlanFlags: {
        "--corpus_gb=1 --config_file=a": ("config_file", "corpus_gb"),
        "--corpus_gb=1 --lengths=64": ("lengths", "corpus_gb"),
        "--corpus_gb=1 --batch_size=64": ("batch_size", "corpus_gb"),
        "--corpus_gb=1 --dupe_factor=5": ("dupe_factor", "masking=static"),
        "--dupe_factor=5": ("dupe_factor", "corpus_gb"),
        "--vocab_size=9": ("vocab_size", "corpus_gb or --config_file"),
        "--model=bert_large": ("model", "corpus_gb"),
        "--gpus=4": ("gpus", "corpus_gb"),
        "--gpu=h100": ("gpu", "corpus_gb"),
        "--utilisation=0.5": ("utilisation", "corpus_gb"),
        "--num_passes=5": ("num_passes", "corpus_gb"),
        "--cores=5": ("cores", "corpus_gb"),
        "--masking=static": ("masking", "corpus_gb"),
        "--compression=GZIP": ("compression", "corpus_gb"),
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("flags_class", "flags"), [(each, flags) for each, rows in DECLARED.items() for flags in rows]
)
def test_declared(flags_class, flags):
    required = [
        f"--{field.name}=x"
        for field in dataclasses.fields(flags_class)
        if field.metadata["required"] and f"--{field.name}" not in flags
    ]
    name, other = DECLARED[flags_class][flags]
    with pytest.raises(InputError) as caught:
        parse(flags_class, ["program", *required, *flags.split()])
    beginnings = f"--{name} needs --{other}. ", f"--{name} and --{other}: only one may be given. "
    assert str(caught.value).startswith(beginnings if other else f"--{name} must be ")
    assert "Received: --" in str(caught.value)
