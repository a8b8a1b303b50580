"""The programs: flags in, a call into the library out."""
