"""A Chromium without a screen, for tests that look at pages."""

import base64
import contextlib
import shutil
import time

from selenium import webdriver

# Seconds: a busy machine is slow.
PATIENCE = 300

PROGRAMS = ("chromium", "chromedriver")  # Debian's chromium and chromium-driver


@contextlib.contextmanager
def open_browser(language="ko-KR"):
    """A Chromium of selenium that speaks a language."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which(PROGRAMS[0])
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    options.add_argument(f"--lang={language}")
    options.add_experimental_option("prefs", {"intl.accept_languages": language})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(shutil.which(PROGRAMS[1]))
    browser = webdriver.Chrome(options, service)
    try:
        browser.set_page_load_timeout(PATIENCE)
        browser.set_script_timeout(PATIENCE)
        yield browser
    finally:
        browser.quit()


def set_screen(browser, width, height=900, scheme="light"):
    """The size of the page in pixels, and the system's colours."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def wait_until(browser, condition, seconds=PATIENCE):
    """Waits until a function of the browser returns something true, and returns that."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(Exception):  # what it looks for may not be there yet
            if found := condition(browser):
                return found
        time.sleep(0.1)
    raise TimeoutError(f"the page did not come to it: {browser.current_url}")


def photograph(browser, clip):
    """A part of the page (x, y, width, height, scale) as PNG."""
    found = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})
    return base64.b64decode(found["data"])
