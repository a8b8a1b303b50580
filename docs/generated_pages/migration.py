"""Generates docs/migration-flags.md, which maps the reference programs' flags to ours."""

import dataclasses

from generated_pages.flags import PROGRAMS as OURS
from generated_pages.flags import shown
from generated_pages.reference_programs import PROGRAMS
from run_scripts.flags.declaration import PerModel

# Our program -> the reference programs that it replaces.
STANDS_FOR = {
    "create_pretraining_data.py": (
        ("bert", "create_pretraining_data"), ("albert", "create_pretraining_data"),
    ),
    "run_pretraining.py": (("bert", "run_pretraining"), ("albert", "run_pretraining")),
    "run_classifier.py": (("bert", "run_classifier"), ("albert", "run_classifier")),
    "run_squad.py": (
        ("bert", "run_squad"), ("albert", "run_squad_v1"), ("albert", "run_squad_v2"),
    ),
    "run_race.py": (("albert", "run_race"),),
    "extract_features.py": (("bert", "extract_features"),),
}  # fmt: skip

WORDS = {
    "en": {
        "head": """# Migration, flag by flag

[한국어](migration-flags.ko.md) · [Migration](migration.md) · [README](../README.md)

Every flag of the programs of google-research/bert and google-research/albert, and what it is here.
The tables have the flags that need words, with their defaults there (–: none; empty: that program
does not have the flag); "same" includes the default. "same (BERT's or ALBERT's)": the two defaults,
in parentheses, differ, and the configuration file decides which one it is, in
create_pretraining_data.py a flag of ALBERT's ([Migration](migration.md#flags)). Flags that this
project adds are in [Flags](flags.md).

`python docs/generated_pages` makes this page from the code.
""",
        "flag": "flag",
        "here": "here",
        "same": "same",
        "per_model": "same (BERT's or ALBERT's)",
        "default": "default {}",
        "none": "no effect",
        "off": "only `false` is accepted",
        "zero": "only `0` is accepted",
        "refused": "refused",
        "alias": "same; another name for `--{}`",
    },
    "ko": {
        "head": """# 플래그별로 보는 이전 안내

[English](migration-flags.md) · [옮겨 오기](migration.ko.md) · [README](../README.ko.md)

google-research/bert와 google-research/albert의 프로그램에 있는 모든 플래그가 여기서 어떻게 되는지
적었습니다. 표에는 설명이 필요한 플래그와 원본의 기본값이 있습니다(–는
기본값 없음, 빈칸은 그 프로그램에 없는 플래그). "같음"은 기본값도 같다는 뜻입니다.
"같음(BERT 또는 ALBERT)"은 괄호 안의 두 기본값이 다르고 어느 쪽인지는 설정 파일이 정한다는 뜻입니다.
create_pretraining_data.py에서는 ALBERT의 플래그가 있는지로
정합니다([옮겨 오기](migration.ko.md#플래그)). 이 프로젝트에서 더한 플래그는
[플래그](flags.md)(영어)에 있습니다.

이 문서는 `python docs/generated_pages`가 코드에서 만들며, 코드와 맞는지 테스트가 확인합니다.
""",
        "flag": "플래그",
        "here": "여기서는",
        "same": "같음",
        "per_model": "같음(BERT 또는 ALBERT)",
        "default": "기본값 {}",
        "none": "효과 없음",
        "off": "`false`만 받아들임",
        "zero": "`0`만 받아들임",
        "refused": "거절",
        "alias": "같음. `--{}`의 다른 이름",
    },
}

# The statuses that are listed once with all of their flags.
KINDS = ("same", "none", "off", "zero", "refused")

# Flags without a fixed default here, though with the effect of Google's -> what decides.
NOTES = {
    "do_lower_case": {
        "en": "same; off with `--tokenizer=korean`; with a released `--model_dir`, by its name",
        "ko": "같음. `--tokenizer=korean`이면 꺼짐. 공개된 `--model_dir`이면 폴더 이름을 따름",
    },
    "max_predictions_per_seq": {
        "en": "same; with `--packing` what full rows need",
        "ko": "같음. `--packing`이면 꽉 찬 행에 필요한 수",
    },
    "threshold_to_export": {"en": "same", "ko": "같음"},
    "start_n_top": {"en": "same", "ko": "같음"},
    "end_n_top": {"en": "same", "ko": "같음"},
    "do_train": {
        "en": "on only if no `--do_…` flag is given",
        "ko": "`--do_…` 플래그를 하나도 주지 않았을 때만 켜짐",
    },
    "do_eval": {
        "en": "on only if no `--do_…` flag is given",
        "ko": "`--do_…` 플래그를 하나도 주지 않았을 때만 켜짐",
    },
    "do_predict": {"en": "same", "ko": "같음"},
}

# (program, flag) -> how its meaning differs.
DIFFERENT = {
    ("extract_features.py", "layers"): {
        "en": "**differs:** 0 is the embedding output, 1 the first layer; Google's 0 is the first "
        "layer",
        "ko": "**다름:** 0은 임베딩 출력, 1은 첫 번째 층. 원본의 0은 첫 번째 층",
    },
}


def page(language):
    """Returns the text of the page.

    Args:
        language: "en" or "ko".
    """
    words = WORDS[language]
    lines = [words["head"]]
    for program, references in STANDS_FOR.items():
        titles = [f"{model}: {name}.py" for model, name in references]
        lines += [f"## {program}", ""]
        names = list(dict.fromkeys(name for found in references for name in PROGRAMS[found]))
        statuses = {name: status(program, references, name, language) for name in names}
        for kind in KINDS:
            alike = [f"`--{name}`" for name in names if statuses[name] == words[kind]]
            lines += [f"* {words[kind]}: {', '.join(alike)}"] * bool(alike)
        pairs = [
            f"`--{name}` ({_default(references[0], name)}, {_default(references[-1], name)})"
            for name in names
            if statuses[name] == words["per_model"]
        ]
        lines += [f"* {words['per_model']}: {', '.join(pairs)}"] * bool(pairs)
        rows = [
            _row(references, name, statuses[name])
            for name in names
            if statuses[name] not in [words[kind] for kind in (*KINDS, "per_model")]
        ]
        if rows:
            lines += ["", f"| {words['flag']} | {' | '.join(titles)} | {words['here']} |"]
            lines += ["|---" * (len(titles) + 2) + "|", *rows]
        lines += [""]
    return "\n".join(lines)


def _default(reference, name):
    """Returns the default of a flag in a reference program; empty if it lacks the flag."""
    flags = PROGRAMS[reference]
    return f"`{shown(flags[name])}`".replace("`–`", "–") if name in flags else ""


def _row(references, name, here):
    cells = [_default(reference, name) for reference in references]
    return f"| `--{name}` | {' | '.join(cells)} | {here} |"


def status(program, references, name, language):
    """Describes what a flag of the reference programs does here."""
    words = WORDS[language]
    if (program, name) in DIFFERENT:
        return DIFFERENT[program, name][language]
    field = {field.name: field for field in dataclasses.fields(OURS[program])}[name]
    help = field.metadata["help"]
    if help.startswith("Has no effect") or "no effect" in help:
        return words["none"]
    if name in ("use_tpu", "init_from_group0"):
        return words["off"]
    if name == "masked_lm_budget":
        return words["zero"]
    if field.metadata["refused"]:
        return words["refused"]
    if help.startswith("Another name for "):
        return words["alias"].format(help.split()[3].strip("-."))
    if all(same_default(field, *found) for found in references if name in PROGRAMS[found]):
        differ = len({str(PROGRAMS[found].get(name)) for found in references}) > 1
        both = all(name in PROGRAMS[found] for found in references)
        return words["per_model" if both and differ else "same"]
    if field.default is None and name in NOTES:
        return NOTES[name][language]
    return words["default"].format(field.default)


def same_default(field, model, program):
    """Returns True if a flag has the default of a reference program."""
    default = field.default
    if isinstance(default, PerModel):
        default = default.of(model)
    return default == PROGRAMS[model, program][field.name]
