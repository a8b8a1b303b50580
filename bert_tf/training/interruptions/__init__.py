"""What can end a training early: signals, memory, non-finite steps, a folder that is removed."""
