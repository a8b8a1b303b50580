"""Takes pictures of explore's page, for the documents.

python tests/explorer/explore_pictures.py --model_dir=MODEL --output_dir=docs
python tests/explorer/explore_pictures.py --address=http://127.0.0.1:8017/ --output_dir=docs
"""

import argparse
import contextlib
import itertools
from pathlib import Path

from explore_browser import open_browser, picture, set_screen, wait_until_ready
from explore_page import served

LANGUAGES = {"ko": "ko-KR", "en": "en-US"}
SCHEMES = ("light", "dark")
WIDTHS = (1000, 400)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model_dir", help="the model; without it the one of the project")
    parser.add_argument("--address", help="of a page that is served already")
    parser.add_argument("--output_dir", type=Path, required=True)
    parser.add_argument("--tabs", help="which, comma-separated; all without it")
    parser.add_argument("--widths", default=",".join(map(str, WIDTHS)))
    parser.add_argument("--languages", default=",".join(LANGUAGES))
    parser.add_argument("--schemes", default=",".join(SCHEMES))
    flags = parser.parse_args()
    with address_of(flags) as address:
        for language in flags.languages.split(","):
            with open_browser(LANGUAGES[language]) as browser:
                for width, scheme in itertools.product(
                    map(int, flags.widths.split(",")), flags.schemes.split(",")
                ):
                    name = f"{language}_{scheme}_{width}"
                    take(browser, address, (width, scheme), flags.tabs, flags.output_dir, name)


@contextlib.contextmanager
def address_of(flags):
    """The page's address."""
    if flags.address:
        yield flags.address
        return
    from korean_bert import load_model

    with served(load_model(flags.model_dir)) as port:
        yield f"http://127.0.0.1:{port}/"


def take(browser, address, screen, tabs, folder, name):
    """Saves a picture of each tab: explore_TAB_NAME.png."""
    from selenium.webdriver.common.by import By

    set_screen(browser, screen[0], scheme=screen[1])
    browser.get(address)
    wait_until_ready(browser)
    for button in browser.find_elements(By.CSS_SELECTOR, "[role=tab]"):
        tab = button.get_attribute("id").removeprefix("tab-")
        if tabs and tab not in tabs.split(","):
            continue
        set_screen(browser, screen[0], scheme=screen[1])
        button.click()
        wait_until_ready(browser)
        picture(browser, folder / f"explore_{tab}_{name}.png")
    for entry in browser.get_log("browser"):
        print(name, entry["level"], entry["message"])


if __name__ == "__main__":
    main()
