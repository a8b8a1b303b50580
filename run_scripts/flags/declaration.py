"""Declares the flags of a program as the fields of a frozen dataclass.

A field is the only declaration of its flag: what lists flags reads the metadata of the fields.
Where the reference repositories have different defaults for one flag, the default is a `PerModel`.
`resolve_model_defaults` fills in the flags that were not given, once it is known which model is
meant; the value of a flag that was given is never replaced.
"""

import dataclasses
import operator
import types
import typing
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from bert_common.errors import InputError
from model_formats.encoders import BERT, ENCODERS
from run_scripts.flags.limits import MOST_STEPS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from run_scripts.flags.groups import Group

Flags = TypeVar("Flags", bound="DataclassInstance")


@dataclasses.dataclass(frozen=True)
class PerModel:
    """A default by the model's encoder; unlike a plain one it differs from every given value."""

    default: Any  # google-research/bert's, which all encoders have that the table does not name
    # A key of `ENCODERS` -> its own default, for example google-research/albert's.
    by_encoder: dict[str, Any] = dataclasses.field(default_factory=dict)

    def of(self, model_type: str) -> Any:
        """The default of an encoder: its own, else of the encoder that its record names."""
        names = (model_type, ENCODERS[model_type].defaults)
        return next((self.by_encoder[n] for n in names if n in self.by_encoder), self.default)

    def by_title(self) -> dict[str, Any]:
        """The title of an encoder -> its default, BERT's first."""
        values = {BERT.name: self.default, **self.by_encoder}
        return {ENCODERS[name].title: value for name, value in values.items()}


# When a value that a fine-tuned model's folder records may be another one: never, in runs that do
# not train, always.
NEVER, UNTRAINED, ALWAYS = "never", "untrained", "always"


def flag(
    default: Any,
    help: str,
    *,
    group: "Group | None" = None,
    required: bool = False,
    is_input: bool = False,
    is_path: bool = False,
    takes: Sequence[str] = (),
    is_list: bool = False,
    recorded: bool = False,
    in_manifest: bool = True,
    no_effect: bool = False,
    changeable: str = NEVER,
    alike: Sequence[str] = (),
    of_own_files: bool = False,
    kept: bool = False,
    choices: Sequence[str] | None = None,
    convert: Callable[[str], str] | None = None,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> Any:
    """Declares one flag as a dataclass field.

    Args:
        default: the value without the flag; None for "not given"; a `PerModel` for several.
        group: where `--help` shows it: `groups.Group.flag` sets it. None: among the general flags.
        required: whether a run without the flag is refused.
        is_input: whether the value names files to read, which `flag_files` looks for outside the
            working folder too.
        is_path: whether the value is a path, or several, which the program itself looks at.
        takes: what may lie at the path, such as `paths.FILE`, which is checked before the program
            begins; such a flag is a path in any case.
        is_list: whether that holds for each part of a comma-separated list.
        recorded: whether the record of a training, which model cards show, names the value.
        in_manifest: whether it affects the bytes of pre-training records; a resumed run of
            create_pretraining_data compares these flags alone.
        no_effect: whether it exists only so that command lines that have it still work.
        changeable: when a fine-tuned model may be given another value than its folder records:
            `NEVER`, `UNTRAINED` or `ALWAYS`. It matters for the settings of the program's task.
        alike: values of which one may take the place of another as if changeable were `UNTRAINED`.
        of_own_files: whether it describes a user's own files; built-in data sets do without it.
        kept: whether a training that resumes must have the value that it began with, which the
            record of the training names; the default where it does not.
        choices: the allowed values, for a string flag.
        convert: what makes the value of a given one, for a string flag: `str.lower`.
        least, above: the lower bound, included or excluded; every number has one of the two.
        most, below: the upper bound, included or excluded. Without either: `MOST_STEPS`.
    """
    if below is None and (least, above) != (None, None):
        most = MOST_STEPS if most is None else most
    bounds = {"least": least, "above": above, "most": most, "below": below}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    about = dict(
        help=help, group=group, required=required, is_input=is_input,
        is_path=is_path or bool(takes), takes=takes, is_list=is_list, recorded=recorded,
        in_manifest=in_manifest, no_effect=no_effect, changeable=changeable, alike=alike,
        of_own_files=of_own_files, kept=kept, choices=choices, convert=convert, bounds=given,
    )  # fmt: skip
    return dataclasses.field(default=default, metadata=about)


def redeclare(base: "type[DataclassInstance]", name: str, **changes: Any) -> Any:
    """Declares a flag of a base class for a program in which some arguments of `flag` differ."""
    (field,) = (field for field in dataclasses.fields(base) if field.name == name)
    about = {key: value for key, value in field.metadata.items() if key != "bounds"}
    return flag(**{"default": field.default, **about, **field.metadata["bounds"], **changes})


def names_of(flags: "DataclassInstance | type[DataclassInstance]", key: str) -> list[str]:
    """The names of the flags of a program for which this is declared, for example "recorded"."""
    return [field.name for field in dataclasses.fields(flags) if field.metadata[key]]


# The words for a bound, and the comparison that must hold; for NaN none does.
_BOUNDS = {
    "least": ("at least", operator.ge),
    "above": ("above", operator.gt),
    "most": ("at most", operator.le),
    "below": ("below", operator.lt),
}


def check_bounds(values: "DataclassInstance") -> None:
    """Refuses numbers outside the bounds that their flags were declared with."""
    for field in dataclasses.fields(values):
        value, bounds = getattr(values, field.name), field.metadata["bounds"]
        if type(value) not in (int, float):
            continue
        if not all(_BOUNDS[name][1](value, bound) for name, bound in bounds.items()):
            must = " and ".join(f"{_BOUNDS[name][0]} {bound}" for name, bound in bounds.items())
            raise InputError(f"--{field.name} must be {must}. Received: {value}")


def value_type(field: dataclasses.Field[Any]) -> Any:
    """The type of a field's value: `int` for both `int` and `int | None`."""
    if isinstance(field.type, types.UnionType):
        return next(t for t in typing.get_args(field.type) if t is not types.NoneType)
    return field.type


def is_given(values: "DataclassInstance", name: str) -> bool:
    """Whether the command line has a flag whose default is None or `PerModel`."""
    value = getattr(values, name)
    return value is not None and not isinstance(value, PerModel)


def resolve_model_defaults(values: Flags, model_type: str, **known: Any) -> Flags:
    """Fills in the flags that are not given: by what is `known`, else by one model's default.

    `known` are values by names of flags. That of a flag that is given, and not empty, is not used.
    """
    filled = {n: v.of(model_type) for n, v in vars(values).items() if isinstance(v, PerModel)}
    for name, value in known.items():
        if getattr(values, name) == "" or not is_given(values, name):
            filled[name] = value
    return dataclasses.replace(values, **filled)
