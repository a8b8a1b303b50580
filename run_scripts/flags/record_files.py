"""Opens the record files of a flag, with the description and tokenizer beside them."""

import collections
import dataclasses
import functools
import hashlib
import os
import warnings
from typing import TYPE_CHECKING, Any, Self

from bert_common.errors import InputError
from bert_tf.config import EncoderConfig
from create_pretraining_data.records.metadata import (
    described_objective,
    one_value,
    read_sidecar,
    sidecar_names,
    sidecar_path,
    tokenizer_beside,
)
from create_pretraining_data.records.shard_names import collapse_output_file, without_shard
from model_formats.folder_tokenizer import check_table
from model_formats.model_folder import ModelFolder
from run_scripts.flags.paths import expand_globs, first_of
from run_scripts.flags.tokenizer import TokenizerFlags, open_tokenizer
from tokenization import load_tokenizer
from tokenization.loading import Tokenizer
from tokenization.vocabulary import load_vocabulary

if TYPE_CHECKING:
    from run_scripts.flags.pretrain import PretrainFlags


@dataclasses.dataclass(frozen=True)
class RecordFiles:
    """Record files, whose descriptions are read once, on first use."""

    paths: list[str]

    @classmethod
    def of(cls, patterns: str, flag_name: str) -> Self:
        """Opens the files that a flag names, expanded by `expand_globs`.

        Warns if some of the described files are missing, and of two sets of files of one name.
        """
        files = cls(expand_globs(patterns, flag_name))
        files._warn_of_two_sets()
        files._warn_of_missing_files()
        return files

    def _warn_of_two_sets(self):
        sets = {collapse_output_file(path): without_shard(path) for path in self.paths}
        counts = collections.Counter(sets.values())
        if twice := [name for name, stem in sets.items() if counts[stem] > 1]:
            warnings.warn(
                f"read together, though one may be of an earlier run: {first_of(twice)}",
                stacklevel=3,
            )

    def _warn_of_missing_files(self):
        one_of_each = {id(says): (path, says) for path, says in self.described.items()}
        for path, says in one_of_each.values():
            sidecar = sidecar_path(path)
            beside = functools.partial(os.path.join, os.path.dirname(sidecar))
            # A description lists the files of all output folders, each of which has a copy.
            names = [shard["file"] for shard in says.get("shards", ())]
            names = [name for name in names if sidecar in sidecar_names(beside(name))]
            if lost := [name for name in names if not os.path.exists(beside(name))]:
                described = f"{len(names):,} files that {sidecar} describes"
                warnings.warn(f"missing of the {described}: {first_of(lost)}", stacklevel=3)

    @functools.cached_property
    def described(self) -> dict[str, dict[str, Any]]:
        """Path -> the content of the JSON file beside it; {} if there is none."""
        return {path: read_sidecar(path) or {} for path in self.paths}

    @property
    def lengths(self) -> dict[str, Any]:
        """The lengths in the first file's description, by the names of their flags."""
        described = self.described[self.paths[0]].get("record_format", {})
        names = ("max_seq_length", "max_predictions_per_seq")
        return {name: described[name] for name in names if name in described}

    @functools.cached_property
    def objective(self) -> str | None:
        """The sentence objective of all files, "nsp", "sop" or "none"; None if it is not known."""
        found = {path: described_objective(says) for path, says in self.described.items()}
        return one_value(found, "all files of a flag must be made with one --objective")

    def open_tokenizer(self) -> tuple[Tokenizer | None, str]:
        """Returns the tokenizer beside the files, or None, and its folder.

        Raises an `InputError` if the files were made with a different tokenizer.
        """
        path, folder = next(((p, f) for p in self.paths if (f := tokenizer_beside(p))), ("", ""))
        if not folder:
            return None, folder
        tokenizer = load_tokenizer(folder)
        actual, wanted = tokenizer.fingerprint(), self.described[path]["tokenizer"]["fingerprint"]
        if actual != wanted:
            raise InputError(
                f"{folder} must be what the records were made with: fingerprint {wanted[:12]}... "
                f"in {sidecar_path(path)} (--tokenizer_dir names another folder). "
                f"Received: fingerprint {actual[:12]}..."
            )
        return tokenizer, folder


def find_tokenizer(
    values: "PretrainFlags",
    folder: ModelFolder | None,
    config: EncoderConfig,
    files: RecordFiles,
    eval_files: RecordFiles,
) -> tuple[Tokenizer | None, int | None]:
    """Returns the tokenizer of --tokenizer_dir, --model_dir or the records, and its token count.

    Without a tokenizer, counts the tokens of --vocab_file. Raises an `InputError` if the model's
    table has fewer rows than tokens, or if the records were made with a different tokenizer.
    """
    tokenizer, size, mark, flag_name = None, None, ("", ""), "model_dir"
    if values.tokenizer_dir:
        flag_name, tokenizer = "tokenizer_dir", load_tokenizer(values.tokenizer_dir)
    elif values.vocab_file:
        vocabulary, content = load_vocabulary(values.vocab_file)
        flag_name, size = "vocab_file", max(vocabulary.values()) + 1
        mark = "vocabulary_sha256", hashlib.sha256(content).hexdigest()
    elif folder and (found := folder.tokenizer_files(values.do_lower_case)):
        tokenizer = open_tokenizer(TokenizerFlags(**found))
    if tokenizer is not None:
        size, mark = tokenizer.vocab_size, ("fingerprint", tokenizer.fingerprint())
    where = getattr(values, flag_name)
    if size is not None:
        check_table(config, size, where)
    _check_described(files.described | eval_files.described, f"--{flag_name}", where, *mark)
    if tokenizer is None:
        tokenizer, where = files.open_tokenizer()
        if tokenizer is not None:
            size = tokenizer.vocab_size
            check_table(config, size, where)
    return tokenizer, size


def _check_described(described, flag, where, name, actual):
    """Checks that all records have one tokenizer, and that its `name` (if not "") is `actual`."""
    recorded = {path: says.get("tokenizer", {}) for path, says in described.items()}
    prints = {path: says.get("fingerprint") for path, says in recorded.items()}
    prints = {path: f"fingerprint {value}" for path, value in prints.items() if value}
    one_value(prints, "all records, of --eval_input_file too, must be made with one tokenizer")
    for path, says in recorded.items():
        if name and says.get(name, actual) != actual:
            raise InputError(
                f"{flag} must be what the records were made with: {name} {says[name][:12]}... in "
                f"{sidecar_path(path)}. Received: {where}, {name} {actual[:12]}..."
            )
