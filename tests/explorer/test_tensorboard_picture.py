"""The documents' picture of TensorBoard: of the size that is read, and of the runs' curves."""

import pytest
import tensorflow as tf

pytest.importorskip("selenium", reason="the extra test is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from tensorboard_picture import CLOSES_SETTINGS, HEIGHT, WIDTH, take  # noqa: E402

pytestmark = pytest.mark.slow


def test_a_picture_of_a_run(browser, tmp_path):
    image = pytest.importorskip("PIL.Image")
    with tf.summary.create_file_writer(str(tmp_path / "runs" / "a run")).as_default():
        for step in range(20):
            for tag in ("loss/masked_lm", "throughput/tokens_per_second", "learning_rate"):
                tf.summary.scalar(tag, 1 / (1 + step), step)
    path = tmp_path / "picture.png"
    take(browser, tmp_path / "runs", path)
    assert image.open(path).size == (WIDTH, HEIGHT)
    shown = browser.find_element(By.TAG_NAME, "body").text
    assert "a run" in shown and "2 cards" in shown
    assert not browser.find_elements(By.CSS_SELECTOR, f"[aria-label='{CLOSES_SETTINGS}']")
