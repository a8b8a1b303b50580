"""What every program says of its flags with --help, and that its examples and paths are right."""

import dataclasses
import re
import shlex

import pytest
from test_flag_bounds import PROGRAMS
from test_parser import heading_of, is_for_tpus

from bert_common.errors import InputError
from run_scripts.flags.declaration import value_type
from run_scripts.flags.help_groups import COMPATIBILITY, EXAMPLES, GROUPS, REQUIRED, TPU
from run_scripts.flags.parser import help_text, parse

# Headings that are told from the help of a flag.
OUTSIDE = (REQUIRED, COMPATIBILITY, TPU)


@pytest.mark.parametrize("flags_class", PROGRAMS)
def test_groups_of_the_help(flags_class):
    short, full = (help_text(flags_class, "x.py", full=full) for full in (False, True))
    headings = [line for line in full.splitlines() if re.fullmatch(r"[A-Z].*[^.]:", line)]
    order = [f"{name}:" for name in ("Example", REQUIRED, *GROUPS, COMPATIBILITY, TPU)]
    assert headings == [heading for heading in order if heading in headings]
    before, *_ = full.partition(f"\n{headings[2]}\n")
    for field in dataclasses.fields(flags_class):
        assert full.count(f"\n  --{field.name}=<") == 1
        assert (f"\n  --{field.name}=<" in short) != is_for_tpus(field)
        if field.metadata["required"]:
            assert f"\n  --{field.name}=<" in before
    listed = [name for names in GROUPS.values() for name in names]
    others = {f.name for f in dataclasses.fields(flags_class) if heading_of(f) not in OUTSIDE}
    assert others <= set(listed) and len(listed) == len(set(listed))
    assert max(map(len, full.partition("Example:")[2].splitlines())) <= 100


@pytest.mark.parametrize("flags_class", PROGRAMS)
def test_example_of_the_help(flags_class):
    parse(flags_class, ["x", *shlex.split(EXAMPLES[flags_class.__name__])])


# String flags whose values are no paths; spark_master alone may be an address.
NO_PATHS = """
    tokenizer objective masking input_format input_file_mode compression engine spark_master text
    analyser user_symbols profile_steps distribution_strategy precision recompute xla optimizer
    bucket_boundaries allow_missing tpu_name tpu_zone gcp_project master layers pooling
    feature_layers predict_split task_name task_type text_column second_column label_column
    id_column labels metrics albert_hub_module_handle benchmark
"""


@pytest.mark.parametrize("flags_class", PROGRAMS)
def test_addresses_of_storage_are_refused(flags_class):
    example = ["x", *shlex.split(EXAMPLES[flags_class.__name__])]
    for field in dataclasses.fields(flags_class):
        if value_type(field) is not str or field.metadata["choices"]:
            continue
        for value in ("gs://bucket/x", "s3://b/x,local", "local,hdfs://b/x", "file:///tmp/x"):
            argv = [*example, f"--{field.name}={value}"]
            if field.name in NO_PATHS.split() or heading_of(field) == COMPATIBILITY:
                parse(flags_class, argv)
                continue
            with pytest.raises(InputError, match=f"--{field.name} must be a path in .*Received: "):
                parse(flags_class, argv)
