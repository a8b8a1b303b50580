"""A Chromium without a screen, and what tests do with explore's page in it."""

import base64
import contextlib
import shutil
import time

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

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


def set_size(browser, width, height):
    """The size of the page in pixels."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def set_screen(browser, width, height=900, scheme="light"):
    """The size of the page, and the system's colours."""
    set_size(browser, width, height)
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


def wait_until_ready(browser):
    """Waits until the page has shown what it asked for."""
    idle = (
        "return document.getElementById('status').textContent !== '' "
        "&& !document.querySelector('footer.busy, [aria-busy]')"
    )
    wait_until(browser, lambda each: each.execute_script(idle))


def picture(browser, path):
    """Saves the whole page, not only what a screen shows."""
    width = browser.execute_script("return document.documentElement.clientWidth")
    for _ in range(2):  # a long field grows with the screen, and the page with the field
        height = browser.execute_script("return document.documentElement.scrollHeight")
        set_size(browser, width, height)
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    options = {"format": "png", "clip": clip}
    found = browser.execute_cdp_cmd("Page.captureScreenshot", options)
    path.write_bytes(base64.b64decode(found["data"]))


def open_page(browser, port, width=1000):
    set_screen(browser, width)
    browser.get(f"http://127.0.0.1:{port}/")
    browser.execute_script("localStorage.clear()")
    browser.get(f"http://127.0.0.1:{port}/")
    wait_until_ready(browser)
    browser.get_log("browser")


def find(browser, selector):
    return browser.find_elements(By.CSS_SELECTOR, selector)


def click(browser, selector, number=0):
    """Clicks one of the elements, and waits for the answers."""
    find(browser, selector)[number].click()
    wait_until_ready(browser)


def choose(browser, name, value):
    """Chooses a value of a list, and waits for the answers."""
    Select(browser.find_element(By.ID, name)).select_by_value(value)
    wait_until_ready(browser)


def write(browser, name, text):
    """Replaces what a field holds, key by key, and waits for the answers."""
    field = browser.find_element(By.ID, name)
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(Keys.DELETE)
    field.send_keys(text)
    wait_until_ready(browser)


def value(browser, name):
    return browser.find_element(By.ID, name).get_property("value")


def pieces(browser):
    return [each.text.split("\n")[0] for each in find(browser, "#pieces .piece")]


def bars(browser, panel):
    """The rows of a table of bars: (label, number)."""
    rows = find(browser, f"#{panel} .bars tr")
    return [tuple(each.text.replace("\n", " ").split(" ", 1)) for each in rows]


def percent(share):
    return f"{100 * share:.{1 if 100 * share < 10 else 0}f}%"


def open_tab(browser, name):
    browser.find_element(By.ID, f"tab-{name}").click()
    wait_until_ready(browser)


def check_console(browser):
    assert [each for each in browser.get_log("browser") if each["level"] == "SEVERE"] == []
