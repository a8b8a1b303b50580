"""Smaller programs: fill_masks, check_devices, glue_plan and glue_table."""
