"""What tests do with explore's page in a browser."""

from headless_chromium import photograph, set_screen, wait_until
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


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
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    path.write_bytes(photograph(browser, clip))


def open_page(browser, port, width=1000):
    set_screen(browser, width)
    browser.get(f"http://127.0.0.1:{port}/")
    browser.execute_script("localStorage.clear()")
    browser.get(f"http://127.0.0.1:{port}/")
    wait_until_ready(browser)
    browser.get_log("browser")


def find(browser, selector):
    return browser.find_elements(By.CSS_SELECTOR, selector)


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
