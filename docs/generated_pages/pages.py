"""Lists the generated pages."""

import functools

from generated_pages import flags, migration, reference

# File name in docs/ -> a function that returns the page's text.
PAGES = {
    "flags.md": flags.page,
    "reference.md": reference.page,
    "migration-flags.md": functools.partial(migration.page, "en"),
    "migration-flags.ko.md": functools.partial(migration.page, "ko"),
}
