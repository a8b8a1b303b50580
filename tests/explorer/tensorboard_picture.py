"""Takes the picture of TensorBoard that the documents show.

    python tests/explorer/tensorboard_picture.py --logdir=runs --output_file=docs/tensorboard.png

The folders in --logdir are the runs; link the --output_dir of a training there under a name that
says what it is.
"""

import argparse
import contextlib
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

from headless_chromium import PATIENCE, open_browser, photograph, set_screen, wait_until
from PIL import Image
from selenium.webdriver.common.by import By

# Pixels, and the curves that fit into them: a regular expression.
WIDTH, HEIGHT = 1200, 500
TAGS = "masked_lm|tokens_per"

# Colours of a picture: enough for smooth edges of letters, and a third of the bytes.
COLOURS = 128

# What TensorBoard 2.21 calls the button beside the pane of settings.
CLOSES_SETTINGS = "Close side pane"

# Seconds between two pictures; when they are alike, the page has come to rest.
PAUSE = 2.0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logdir", type=Path, required=True, help="the folder of the runs")
    parser.add_argument("--output_file", type=Path, required=True, help="a PNG")
    flags = parser.parse_args()
    with open_browser("en-US") as browser:
        take(browser, flags.logdir, flags.output_file)
    print(flags.output_file, f"{flags.output_file.stat().st_size / 1000:.0f} KB")


def take(browser, logdir, path):
    """Saves a picture of the runs in a folder."""
    set_screen(browser, WIDTH, HEIGHT)
    query = urllib.parse.urlencode({"darkMode": "false", "tagFilter": TAGS})
    with served(logdir) as port:
        browser.get(f"http://127.0.0.1:{port}/?{query}#timeseries")
        close_settings(browser)
        path.write_bytes(drawn(browser))
    Image.open(path).convert("RGB").quantize(COLOURS).save(path, optimize=True)


@contextlib.contextmanager
def served(logdir):
    """The port at which TensorBoard shows the runs of a folder, while the block runs."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", f"--logdir={logdir}", f"--port={port}"]
    server = subprocess.Popen(
        [*command, "--host=127.0.0.1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end = time.monotonic() + PATIENCE
        while not answers(f"http://127.0.0.1:{port}/data/plugin/timeseries/tags"):
            if server.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"TensorBoard does not answer. Received: {logdir}")
            time.sleep(0.5)
        yield port
    finally:
        server.terminate()
        server.wait()


def answers(address):
    """Whether a server has found data: it reads the runs after it has begun to answer."""
    try:
        with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
            return b"masked_lm" in answer.read()
    except OSError:
        return False


def close_settings(browser):
    """Closes the pane of settings, which takes a quarter of the width."""
    wait_until(browser, lambda each: each.find_elements(By.CSS_SELECTOR, "card-view"))
    browser.find_element(By.CSS_SELECTOR, f"[aria-label='{CLOSES_SETTINGS}']").click()


def drawn(browser):
    """A picture of the page once it no longer changes."""
    last = None

    def at_rest(each):
        nonlocal last
        before, last = last, photograph(each)
        if before == last and not each.find_elements(By.CSS_SELECTOR, "mat-spinner"):
            return last
        time.sleep(PAUSE)

    return wait_until(browser, at_rest)


if __name__ == "__main__":
    main()
