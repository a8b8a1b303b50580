"""Where larger reference data lies: beside the repository, or where SHARED_DATA says.

Tests that need it skip where it is absent; nothing essential is tested only with it.
"""

import os
from pathlib import Path

from paths import ROOT

SHARED = Path(os.environ.get("SHARED_DATA", ROOT.parent / "shared"))
