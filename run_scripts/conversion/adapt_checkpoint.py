"""The adapt_checkpoint program, which gives a model a different vocabulary or more positions."""

import dataclasses
import functools
import os
import sys
from collections.abc import Mapping
from typing import Any

from bert_common.atomic_write import write_json
from bert_common.errors import InputError
from bert_common.folders import make_writable
from bert_common.import_tensorflow import import_tensorflow
from bert_tf.checkpoint_files import EXPORTED_NAME
from bert_tf.config import EncoderConfig
from model_formats.adaptation.added_tokens import add_tokens, plan_added_rows, read_tokens
from model_formats.adaptation.new_rows import draw_all_new, plan_rows, typical_rows
from model_formats.adaptation.positions import METHODS
from model_formats.adaptation.report import REPORT_FILE, added_report, as_lines, vocabulary_report
from model_formats.folder_tokenizer import check_table
from model_formats.folder_weights import check_output
from model_formats.model_folder import ModelFolder
from model_formats.pretraining_objectives import objective_of
from model_formats.weights import open_weights
from run_scripts.flags import groups
from run_scripts.flags.declaration import flag
from run_scripts.flags.parser import run_program
from run_scripts.flags.paths import FILE, FOLDER, NOTHING
from run_scripts.flags.tokenizer import TokenizerFlags, open_tokenizer
from run_scripts.flags.training import check_checkpoint
from tokenization.loading import Tokenizer


@dataclasses.dataclass(frozen=True)
class AdaptFlags:
    """Adapts a model to another vocabulary, to more words, or to more positions.

    A token that is in both vocabularies keeps its row of the embedding table. The row of a new
    token is initialized with the mean of the rows of the tokens into which the model's own
    tokenizer splits it. All other weights stay unchanged. Pre-train the result further with
    run_pretraining --model_dir.
    """

    EXAMPLE = "--model_dir=output/model --tokenizer_dir=data/bank_vocab --output_dir=output/bank"

    model_dir: str = groups.MODEL.input_folder(
        "The folder of the model to adapt, saved by this project or transformers, or downloaded "
        "from Google and unpacked.",
        required=True,
    )
    output_dir: str = groups.OUTPUT.output_folder(
        "The folder to write the adapted model to. It must not hold a model yet.", required=True
    )
    init_checkpoint: str = groups.MODEL.optional(
        "The checkpoint to adapt. Default: the best checkpoint in --model_dir, else the newest.",
        takes=(FILE, FOLDER, NOTHING),
    )
    tokenizer_dir: str = groups.TOKENIZER.input_folder(
        "The folder of the new tokenizer, with tokenizer_config.json, as written by "
        "build_vocab. Default: the tokenizer in --model_dir.",
        not_with=("add_tokens",),
    )
    add_tokens: str = groups.RESIZING.input_file(
        "A file of words to add to the vocabulary, one per line. Write ##X if X continues a word. "
        "New words first replace [unused] tokens, then extend the vocabulary."
    )
    new_rows: str = groups.RESIZING.flag(
        "mean",
        "How to initialize a new token's embedding. mean: as the mean embedding of the old tokens "
        "into which it splits. random: from a normal distribution with the mean and standard "
        "deviation of the old embeddings.",
        choices=("mean", "random"),
        needs=("tokenizer_dir or add_tokens",),
    )
    max_position_embeddings: int = groups.RESIZING.optional(
        "The number of positions in the adapted model. It must be larger than in the model in"
        " --model_dir, or equal if some positions of that model were never trained: these are"
        " then initialized. Default: as in --model_dir.",
        least=1,
    )
    new_positions: str = groups.RESIZING.optional(
        "How to initialize the embeddings of new positions. repeat: repeat the trained ones. "
        "interpolate: stretch the trained ones over the new length, which also changes the old "
        "positions. Default: repeat.",
        choices=tuple(METHODS),
        needs=("max_position_embeddings",),
    )
    do_lower_case: bool = groups.TOKENIZER.optional(
        "Whether the tokenizer in --model_dir lower-cases text. Only for folders without "
        "tokenizer_config.json. Default: off if the folder's name or vocabulary indicates a "
        "cased model, else on."
    )
    random_seed: int = flag(12345, "The seed for --new_rows=random.", least=0)


def adapt(values: AdaptFlags) -> None:
    """Checks flags and files, then writes the adapted model."""
    check_flags(values)
    chosen = check_checkpoint(values.init_checkpoint)
    model = ModelFolder.open(values.model_dir, chosen)
    config, known = model.config, model.trained_positions
    check_output(values.output_dir, model.path)
    check_positions(values, config, known)
    tokenizer = new_tokenizer = open_own_tokenizer(values, model)
    rows = typical = None
    report: dict[str, Any] = {"checkpoint": model.checkpoint}
    if tokenizer and (values.tokenizer_dir or values.add_tokens):
        new_tokenizer, rows, report["vocabulary"] = plan_vocabulary(values, config, tokenizer)
        typical = typical_rows(tokenizer)
        config = dataclasses.replace(config, vocab_size=len(rows))
    positions, method = values.max_position_embeddings, values.new_positions or "repeat"
    if positions:
        old = config.max_position_embeddings
        report["positions"] = {"old": old, "trained": known, "new": positions, "method": method}
        config = dataclasses.replace(config, max_position_embeddings=positions)
    requirement = "--output_dir must be a folder that can be created and written to"
    make_writable(values.output_dir, requirement)
    import_tensorflow()
    from bert_tf.checkpoint import write_arrays
    from model_formats.adaptation.arrays import adapted_arrays

    trained = known or model.config.max_position_embeddings  # released models trained them all
    arrays = open_weights(model.checkpoint)
    heads = objective_of(arrays.shapes).model_class.google_names
    names = {**heads, **model.encoder.model_class.google_names}
    adapted = adapted_arrays(
        arrays,
        model.config,
        names,
        rows=rows,
        typical=typical,
        positions=positions,
        trained=trained,
        method=method,
        seed=values.random_seed,
    )
    ModelFolder.write(
        values.output_dir,
        model.model_type,
        config,
        tokenizer=new_tokenizer,
        positions=trained if positions else known,
        task=model.task,  # whose head is carried over too
        settings=model.settings,
        stages=model.stages,
    )
    write_json(os.path.join(values.output_dir, REPORT_FILE), report)
    # The checkpoint comes last: it makes the folder a model's.
    write_arrays(os.path.join(values.output_dir, EXPORTED_NAME), adapted)
    print_report(report)
    print(f"written: {values.output_dir}")


def check_flags(values: AdaptFlags) -> None:
    """Raises an `InputError` if flags ask for nothing."""
    if not (values.tokenizer_dir or values.add_tokens or values.max_position_embeddings):
        raise InputError(
            "one of --tokenizer_dir, --add_tokens, --max_position_embeddings must be given. "
            "Received: none"
        )


def check_positions(values: AdaptFlags, config: EncoderConfig, trained: int | None) -> None:
    """Raises an `InputError` if the number of positions changes nothing or is below the model's.

    `trained` is how many of the model's positions were trained; None if unknown.
    """
    wanted, positions = values.max_position_embeddings, config.max_position_embeddings
    untrained = trained is not None and trained < positions
    if wanted is not None and (wanted < positions or (wanted == positions and not untrained)):
        raise InputError(
            f"--max_position_embeddings must be {'at least' if untrained else 'above'} the "
            f"model's. Received: {wanted}, the model has {positions}"
        )


def open_own_tokenizer(values: AdaptFlags, model: ModelFolder) -> Tokenizer | None:
    """Opens the tokenizer of the model's folder; None if it has none and the vocabulary stays."""
    found = model.tokenizer_files(values.do_lower_case)
    if not found:
        if values.tokenizer_dir or values.add_tokens:
            raise InputError(
                "--model_dir must hold the model's tokenizer, from whose tokens the new rows are "
                f"made. Received: {values.model_dir} without it"
            )
        return None
    tokenizer = open_tokenizer(TokenizerFlags(**found))
    check_table(model.config, tokenizer.vocab_size, values.model_dir)
    return tokenizer


def plan_vocabulary(
    values: AdaptFlags, config: EncoderConfig, tokenizer: Tokenizer
) -> tuple[Tokenizer, list[Any], dict[str, Any]]:
    """Opens or makes the new tokenizer; returns it, its rows and their report."""
    if values.add_tokens:
        added = add_tokens(tokenizer, read_tokens(values.add_tokens))
        rows = plan_added_rows(tokenizer, added, config.vocab_size)
        rows = rows if values.new_rows == "mean" else draw_all_new(rows)
        return added.tokenizer, rows, added_report(rows, tokenizer, added)
    new = open_tokenizer(TokenizerFlags(tokenizer_dir=values.tokenizer_dir))
    if new.fingerprint() == tokenizer.fingerprint():
        raise InputError(
            "--tokenizer_dir must hold another tokenizer than the model's. Received: "
            f"{values.tokenizer_dir}, the same vocabulary with the same options"
        )
    rows = plan_rows(tokenizer, new)
    rows = rows if values.new_rows == "mean" else draw_all_new(rows)
    return new, rows, vocabulary_report(rows, tokenizer, new)


def print_report(report: Mapping[str, Any]) -> None:
    """Prints what was changed."""
    if "vocabulary" in report:
        for line in as_lines(report["vocabulary"]):
            print(line)
    if "positions" in report:
        numbers = report["positions"]
        trained = numbers["trained"] or numbers["old"]
        done = {"repeat": "repeated", "interpolate": "interpolated"}[numbers["method"]]
        print(
            f"positions: {numbers['old']:,} -> {numbers['new']:,}, {done} from the {trained:,} "
            f"{'that were trained' if numbers['trained'] else 'of the model'}"
        )


main = functools.partial(run_program, adapt, AdaptFlags)

if __name__ == "__main__":
    sys.exit(main())
