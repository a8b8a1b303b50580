"""The fill-masks program, which fills in [MASK] with a pre-trained model's guesses."""

import atexit
import dataclasses
import functools
import gc
import sys

from bert_common.errors import InputError
from korean_bert.masked_text import MASK
from model_formats.model_folder import ModelFolder
from model_formats.weights import check_weights
from run_scripts.flags import groups
from run_scripts.flags.devices import DeviceFlags, start_tensorflow
from run_scripts.flags.parser import run_program
from run_scripts.flags.tokenizer import TokenizerFlags
from run_scripts.given_model import find_directory, open_model_tokenizer


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
    tokenizer = open_model_tokenizer(values, folder.config, folder)
    check_weights(folder.checkpoint)

    start_tensorflow(values)
    from korean_bert.model import Model
    from model_formats.load_folder import load

    model = Model(load(folder, tokenizer))
    for text in texts:
        found = model.fill_mask(text, values.guesses, max_pieces=1)
        print(text)
        for guesses in found:
            line = "  ".join(f"{each.pieces[0]} {100 * each.probability:.0f}%" for each in guesses)
            print(f"    {line}")
    # Otherwise the interpreter spends a second at exit collecting TensorFlow's objects.
    atexit.register(gc.freeze)


main = functools.partial(run_program, fill_masks, FillMasksFlags)

if __name__ == "__main__":
    sys.exit(main())
