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
from explore_browser import picture, wait_until_ready
from explore_page import served
from explore_requests import ask
from headless_chromium import open_browser, set_screen
from PIL import Image
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

from korean_bert import load_model

LANGUAGES = {"ko": "ko-KR", "en": "en-US"}

# Colours of a picture: enough for smooth edges of letters, and a third of the bytes.
COLOURS = 128

# Pixels: a page that is longer is shown whole, and a shorter one has little space below.
HEIGHT = 400


class Picture(NamedTuple):
    """What a picture shows."""

    name: str
    tab: str
    language: str
    scheme: str
    width: int
    with_head: bool = False  # of attention: one head, chosen by `choose_head`


OF_PRETRAINED = (
    Picture("explore.png", "pieces", "en", "light", 1000),
    Picture("explore.ko.png", "pieces", "ko", "light", 1000),
    Picture("explore_attention.png", "attention", "en", "dark", 1000, True),
    Picture("explore_senses.png", "senses", "en", "light", 400),
    Picture("explore_attention.ko.png", "attention", "ko", "dark", 1000, True),
    Picture("explore_senses.ko.png", "senses", "ko", "light", 400),
)
OF_VECTORS = (
    Picture("explore_search.png", "search", "en", "light", 1000),
    Picture("explore_search.ko.png", "search", "ko", "light", 1000),
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_dir", help="the model; without it the one of the project")
    parser.add_argument("--output_dir", type=Path, required=True)
    flags = parser.parse_args()
    model = load_model(flags.model_dir)
    with served(model) as port:
        address = f"http://127.0.0.1:{port}/"
        for language in LANGUAGES:
            with open_browser(LANGUAGES[language]) as browser:
                for each in pictures_of(model.loaded.task):
                    if each.language == language:
                        take(browser, address, each, flags.output_dir)


def pictures_of(task):
    """The `Picture`s of a model for a task."""
    if task == "pretraining":
        return OF_PRETRAINED
    if task == "similarity":
        return OF_VECTORS
    return (
        Picture(f"explore_{task}.png", "prediction", "en", "light", 1000),
        Picture(f"explore_{task}.ko.png", "prediction", "ko", "light", 1000),
    )


def take(browser, address, wanted, folder):
    """Saves a picture; what the browser complains of is printed."""
    set_screen(browser, wanted.width, HEIGHT, wanted.scheme)
    browser.get(address)
    wait_until_ready(browser)
    browser.find_element(By.ID, f"tab-{wanted.tab}").click()
    wait_until_ready(browser)
    if wanted.with_head:
        choose_head(browser, address)
    browser.execute_script("document.activeElement.blur()")
    path = folder / wanted.name
    picture(browser, path)
    Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)
    print(path, f"{path.stat().st_size / 1000:.0f} KB", flush=True)
    for entry in browser.get_log("browser"):
        print(wanted.name, entry["level"], entry["message"])


def choose_head(browser, address):
    """Chooses the head whose pieces attend the most to one other: its lines are few."""
    text = browser.find_element(By.ID, "text").get_property("value")
    heads = ask(urllib.parse.urlsplit(address).port, "heads", text=text).values["heads"]
    largest = [
        np.reshape(levels, (round(len(levels) ** 0.5), -1)).max(axis=1).mean()  # [C, C]
        for layer in heads
        for levels in layer
    ]
    for name, number in zip(
        ("layer", "head"), divmod(np.argmax(largest), len(heads[0])), strict=True
    ):
        Select(browser.find_element(By.ID, name)).select_by_value(str(number + 1))
    wait_until_ready(browser)


if __name__ == "__main__":
    main()
