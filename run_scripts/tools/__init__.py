"""Smaller programs: fill_masks, check_devices, the plan and the table of GLUE."""
