"""The fill-masks program, which fills in [MASK] with a pre-trained model's guesses."""

import atexit
import dataclasses
import functools
import gc
import sys

from bert_common.errors import InputError
from korean_bert.masked_text import MASK, encode_with_masks
from model_formats.model_folder import ModelFolder, warn_of_untrained_positions
from model_formats.weights import check_weights
from run_scripts.flags import groups
from run_scripts.flags.devices import DeviceFlags, start_tensorflow
from run_scripts.flags.parser import run_program
from run_scripts.flags.tokenizer import TokenizerFlags
from run_scripts.given_model import find_directory, open_model_tokenizer
from tokenization.unknown_share import warn_of_unknown
from tokenization.vocabulary import special_ids


@dataclasses.dataclass(frozen=True)
class FillMasksFlags(TokenizerFlags, DeviceFlags):
    """Fills every [MASK] in a text with the model's best guesses; a [MASK] stands for one token.

    For example, --text='어제 친구를 [MASK] 밥을 먹었다.' or, for a particle,
    --text='나는 학교[MASK] 갔다.'"""

    EXAMPLE = "--text='나는 학교[MASK] 갔다.'"

    model_dir: str = groups.MODEL.input_folder(
        "The folder of the pre-trained model. It provides the best checkpoint, else the newest, "
        "and the tokenizer unless another flag names one. Default: the model included in this "
        "project."
    )
    text: str = groups.VOCABULARY.required(
        "The sentences to complete, separated by |, each with at least one [MASK]."
    )
    guesses: int = groups.ANSWERS.flag(5, "The number of guesses for each [MASK].", least=1)


def fill_masks(values: FillMasksFlags) -> None:
    """Loads the model and prints a line of guesses for every [MASK]."""
    texts = [text.strip() for text in values.text.split("|")]
    for text in texts:
        if MASK not in text:
            raise InputError(f"every sentence of --text must hold {MASK}. Received: {text!r}")
    folder = ModelFolder.open(find_directory(values))
    config, checkpoint = folder.config, folder.checkpoint
    tokenizer = open_model_tokenizer(values, config, folder)
    check_weights(checkpoint)
    warn_of_unknown(tokenizer, texts)
    sequences = [encode_with_masks(tokenizer, text) for text in texts]
    for text, ids in zip(texts, sequences, strict=True):
        if len(ids) > config.max_position_embeddings:
            raise InputError(
                f"a sentence must have at most {config.max_position_embeddings} tokens. "
                f"Received: {len(ids)} in {text!r}"
            )
    warn_of_untrained_positions(checkpoint, max(map(len, sequences)), "the longest sentence")

    start_tensorflow(values)
    from bert_tf.summaries.mask_predictions import best_guesses
    from model_formats.load_folder import load

    loaded = load(folder, tokenizer)
    if not loaded.fills_masks:
        raise InputError(
            "--model_dir must hold a model for masked words (of an ELECTRA: with its generator). "
            f"Received: {checkpoint} without the head for them"
        )
    for text, ids in zip(texts, sequences, strict=True):
        positions = [i for i, piece in enumerate(ids) if piece == tokenizer.mask_id]
        print(text)
        pieces = sorted(set(tokenizer.vocab.values()))  # the model's table may have more rows
        for guesses in best_guesses(
            loaded.model, ids, positions, pieces, values.guesses, excluded=special_ids(tokenizer)
        ):
            line = "  ".join(
                f"{tokenizer.convert_ids_to_tokens([piece])[0]} {100 * probability:.0f}%"
                for piece, probability in guesses
            )
            print(f"    {line}")
    # Otherwise the interpreter spends a second at exit collecting TensorFlow's objects.
    atexit.register(gc.freeze)


main = functools.partial(run_program, fill_masks, FillMasksFlags)

if __name__ == "__main__":
    sys.exit(main())
