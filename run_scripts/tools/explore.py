"""The explore program, which shows a model from inside on a page that this machine serves."""

import dataclasses
import functools
import importlib.util
import sys

from bert_common.errors import InputError
from model_formats.model_folder import REFERENCE_MODEL
from run_scripts.flags import groups
from run_scripts.flags.declaration import flag
from run_scripts.flags.devices import DeviceFlags, start_tensorflow
from run_scripts.flags.parser import run_program
from run_scripts.flags.paths import FILE, FOLDER, NOTHING, split_list
from tokenization.comparison import open_vocabularies

PACKAGES = ("starlette", "uvicorn")  # the extra "explore"


@dataclasses.dataclass(frozen=True)
class ExploreFlags(DeviceFlags):
    """Shows a pre-trained or fine-tuned model on a page in the browser.

    The page shows tokens, guesses for masked words, attention, and the neighbours and vectors of
    words. For a fine-tuned model, it also shows labels, entities or answers. Only this machine can
    open the page, at 127.0.0.1; from another machine, use ssh -L 8017:127.0.0.1:8017."""

    EXAMPLE = "--model_dir=output/model --tokenizers=data/vocab,data/other_vocab"

    model_dir: str = groups.MODEL.optional(
        "The folder of the model to show, or one of its checkpoints. Default: the model included "
        "in this project.",
        is_input=True,
        takes=(FILE, FOLDER, NOTHING),
    )
    tokenizer_dir: str = groups.TOKENIZER.input_folder(
        "The folder of the tokenizer, if the model's folder has none."
    )
    tokenizers: str = groups.TOKENIZER.optional(
        "Other vocabularies for the page to compare with the model's: comma-separated tokenizer "
        "folders, vocab.txt, SentencePiece .model or Hugging Face tokenizer.json files.",
        takes=(FILE, FOLDER, NOTHING),
    )
    port: int = flag(
        8017, "The TCP port to serve the page on. 0: any free port.", least=0, most=2**16 - 1
    )


def explore(values: ExploreFlags) -> None:
    """Loads the model, then serves the page until Ctrl-C."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"explore requires the packages {' and '.join(PACKAGES)} (pip install -e "
            f"'.[explore]'). Received: no {' and no '.join(missing)}"
        )
    opened = open_vocabularies(split_list(values.tokenizers or ""))
    from explorer.server import open_port, serve

    with open_port(values.port) as listening:
        start_tensorflow(values)
        from korean_bert import load_model

        if not values.model_dir:
            print(f"note: the model is {REFERENCE_MODEL}; --model_dir chooses another")
        model = load_model(values.model_dir or None, tokenizer=values.tokenizer_dir)
        model.tokenizer  # noqa: B018 (without one it is an error, now and not in the page)
        port = listening.getsockname()[1]
        print(f"{model!r}\nhttp://127.0.0.1:{port}/   (Ctrl-C ends the program)", flush=True)
        serve(model, [(each.name, each.pieces) for each in opened], listening)
    print("stopped")


main = functools.partial(run_program, explore, ExploreFlags)

if __name__ == "__main__":
    sys.exit(main())
