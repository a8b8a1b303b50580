"""The table of generated pages."""

import functools

from generated_pages import flags, migration, reference

# Name in docs/ -> a function that returns its text.
PAGES = {
    "flags.md": flags.page,
    "reference.md": reference.page,
    "migration-flags.md": functools.partial(migration.page, "en"),
    "migration-flags.ko.md": functools.partial(migration.page, "ko"),
}
