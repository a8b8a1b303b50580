"""Takes pictures of explore's page, for the documents.

python tests/explorer/explore_pictures.py --output_dir=docs
python tests/explorer/explore_pictures.py --output_dir=docs --model_dir=reference_vectors
python tests/explorer/explore_pictures.py --output_dir=docs --model_dir=output/nsmc

What a fine-tuned model answers is a picture for its kind: explore_TASK.png. Names in .ko.png are of
pictures in Korean.
"""

import argparse
import urllib.parse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from explore_browser import choose, open_browser, open_tab, picture, set_screen, wait_until_ready
from explore_page import served
from explore_requests import ask
from PIL import Image
from selenium.webdriver.common.by import By

from korean_bert import load_model

LANGUAGES = {".ko": "ko-KR", "": "en-US"}

# Colours of a picture: enough for smooth edges of letters, and a third of the bytes.
COLOURS = 128

# Pixels: a page that is longer is shown whole, and a shorter one has little space below.
HEIGHT = 400


class Picture(NamedTuple):
    """What a picture shows."""

    name: str
    tab: str
    scheme: str = "light"
    width: int = 1000
    with_head: bool = False  # of attention: one head, chosen by `choose_head`


OF_PRETRAINED = (
    Picture("explore", "pieces"),
    Picture("explore_attention", "attention", "dark", with_head=True),
    Picture("explore_senses", "senses", width=400),
)
OF_VECTORS = (Picture("explore_search", "search"),)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_dir", help="the model; without it the one of the project")
    parser.add_argument("--output_dir", type=Path, required=True)
    flags = parser.parse_args()
    model = load_model(flags.model_dir)
    with served(model) as port:
        address = f"http://127.0.0.1:{port}/"
        for end, language in LANGUAGES.items():
            with open_browser(language) as browser:
                for each in pictures_of(model.loaded.task):
                    take(browser, address, each, flags.output_dir / f"{each.name}{end}.png")


def pictures_of(task):
    """The `Picture`s of a model for a task."""
    if task == "pretraining":
        return OF_PRETRAINED
    if task == "similarity":
        return OF_VECTORS
    return (Picture(f"explore_{task}", "prediction"),)


def take(browser, address, wanted, path):
    """Saves a picture; what the browser complains of is printed."""
    set_screen(browser, wanted.width, HEIGHT, wanted.scheme)
    browser.get(address)
    wait_until_ready(browser)
    open_tab(browser, wanted.tab)
    if wanted.with_head:
        choose_head(browser, address)
    browser.execute_script("document.activeElement.blur()")
    picture(browser, path)
    Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)
    print(path, f"{path.stat().st_size / 1000:.0f} KB", flush=True)
    for entry in browser.get_log("browser"):
        print(path.name, entry["level"], entry["message"])


def choose_head(browser, address):
    """Chooses the head whose pieces attend the most to one other: its lines are few."""
    text = browser.find_element(By.ID, "text").get_property("value")
    heads = ask(urllib.parse.urlsplit(address).port, "heads", text=text).values["heads"]
    largest = [
        np.reshape(levels, (round(len(levels) ** 0.5), -1)).max(axis=1).mean()  # [C, C]
        for layer in heads
        for levels in layer
    ]
    numbers = divmod(np.argmax(largest), len(heads[0]))
    for name, number in zip(("layer", "head"), numbers, strict=True):
        choose(browser, name, str(number + 1))


if __name__ == "__main__":
    main()
