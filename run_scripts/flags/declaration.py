"""Declares the flags of a program as the fields of a frozen dataclass.

A field is the only declaration of its flag; code that lists flags reads the fields' metadata.
If the reference repositories have different defaults for a flag, its default is a `PerModel`. Once
the model is known, `resolve_model_defaults` fills in the flags that were not given. It never
replaces a given value.
"""

import dataclasses
import operator
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from bert_common.errors import InputError
from model_formats.encoders import BERT, ENCODERS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from run_scripts.flags.groups import Group

Flags = TypeVar("Flags", bound="DataclassInstance")

# The upper bound of every number that declares none: updates are counted, and the seeds of
# TensorFlow kept, in an int32.
INT32_MAX = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class PerModel:
    """A default that depends on the encoder; unlike a plain one, it never equals a given value."""

    default: Any  # google-research/bert's, used if `by_encoder` has none for an encoder
    # A key of `ENCODERS` -> its own default, for example google-research/albert's.
    by_encoder: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def of(self, model_type: str) -> Any:
        """Returns an encoder's own default, else its `defaults` encoder's, else BERT's."""
        names = (model_type, ENCODERS[model_type].defaults)
        return next((self.by_encoder[n] for n in names if n in self.by_encoder), self.default)

    def by_title(self) -> dict[str, Any]:
        """Returns the titles of encoders -> their defaults, BERT first."""
        values = {BERT.name: self.default, **self.by_encoder}
        return {ENCODERS[name].title: value for name, value in values.items()}


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
    refused: bool = False,
    needs: Sequence[str] = (),
    not_with: Sequence[str] = (),
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
        default: the value if the flag is not given; None for none, a `PerModel` for several.
        group: the group in `--help`, set by `groups.Group.flag`. None: the general flags.
        required: whether the program refuses to run without the flag.
        is_input: whether the value names files to read, which `flag_files` also looks for outside
            the working folder.
        is_path: whether the value is one or more paths that the program itself accesses.
        takes: what may exist at the path, such as `paths.FILE`, checked before the program
            starts. Implies `is_path`.
        is_list: whether `takes` applies to each part of a comma-separated list.
        recorded: whether the training record, which model cards show, includes the value.
        in_manifest: whether the flag affects the bytes of pre-training records; a resumed run of
            create_pretraining_data compares only these flags.
        no_effect: whether the flag exists only so that command lines with it still work.
        refused: whether any value but the default is an error, for the reason in `help`, which
            begins with "Must be".
        needs: what must be given with the flag, each another flag, another flag's value or one of
            several: "output_dir", "engine=spark", "data_file or train_file".
        not_with: what must not be given with the flag, each another flag or another flag's value.
        kept: whether a resumed training must keep the value in its training record, or the
            default if the record lacks the flag.
        choices: the allowed values, for a string flag.
        convert: a function that is applied to a given string, such as `str.lower`.
        least, above: the inclusive or exclusive lower bound; every number has one of them.
        most, below: the inclusive or exclusive upper bound. Default: `INT32_MAX`.
    """
    if below is None and (least, above) != (None, None):
        most = INT32_MAX if most is None else most
    bounds = {"least": least, "above": above, "most": most, "below": below}
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    about = dict(
        help=help, group=group, required=required, is_input=is_input,
        is_path=is_path or bool(takes), takes=takes, is_list=is_list, recorded=recorded,
        in_manifest=in_manifest, no_effect=no_effect, refused=refused, needs=needs,
        not_with=not_with, kept=kept, choices=choices, convert=convert, bounds=given,
    )  # fmt: skip
    return dataclasses.field(default=default, metadata=about)


def redeclare(base: "type[DataclassInstance]", name: str, **changes: Any) -> Any:
    """Redeclares a flag of a base class with some arguments of `flag` changed."""
    (field,) = (field for field in dataclasses.fields(base) if field.name == name)
    about = {key: value for key, value in field.metadata.items() if key != "bounds"}
    return flag(**{"default": field.default, **about, **field.metadata["bounds"], **changes})


def names_of(flags: "DataclassInstance | type[DataclassInstance]", key: str) -> list[str]:
    """Returns the names of the flags whose argument `key`, such as "recorded", is set."""
    return [field.name for field in dataclasses.fields(flags) if field.metadata[key]]


# A bound -> its words in messages, and the comparison that must hold; it never does for NaN.
_BOUNDS = {
    "least": ("at least", operator.ge),
    "above": ("above", operator.gt),
    "most": ("at most", operator.le),
    "below": ("below", operator.lt),
}


def check_bounds(values: "DataclassInstance") -> None:
    """Raises an `InputError` if a number is outside the bounds of its flag."""
    for field in dataclasses.fields(values):
        value, bounds = getattr(values, field.name), field.metadata["bounds"]
        if type(value) not in (int, float):
            continue
        if not all(_BOUNDS[name][1](value, bound) for name, bound in bounds.items()):
            must = " and ".join(f"{_BOUNDS[name][0]} {bound}" for name, bound in bounds.items())
            raise InputError(f"--{field.name} must be {must}. Received: {value}")


def value_type(field: dataclasses.Field[Any]) -> Any:
    """Returns the type of a field's value: `int` for both `int` and `int | None`."""
    if isinstance(field.type, types.UnionType):
        return next(t for t in typing.get_args(field.type) if t is not types.NoneType)
    return field.type


def is_given(values: "DataclassInstance", name: str) -> bool:
    """Returns True if a flag whose default is None or a `PerModel` was given."""
    value = getattr(values, name)
    return value is not None and not isinstance(value, PerModel)


def resolve_model_defaults(values: Flags, model_type: str, **known: Any) -> Flags:
    """Fills in the flags that are not given from `known`, else with one model's defaults.

    `known` maps names of flags to values. It is ignored for flags that are given and not empty.
    """
    filled = {n: v.of(model_type) for n, v in vars(values).items() if isinstance(v, PerModel)}
    for name, value in known.items():
        if getattr(values, name) == "" or not is_given(values, name):
            filled[name] = value
    return dataclasses.replace(values, **filled)
