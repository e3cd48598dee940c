"""The providers: one suite over each, and what is particular to one."""
