"""Loads the settings of every test where tests run."""


def pytest_configure(config):
    """Not in a process that deals tests out to others, which would wait for TensorFlow's import."""
    if config.getoption("dist", "no") == "no":
        config.pluginmanager.import_plugin("tests.support.every_test")
