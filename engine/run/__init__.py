"""Runs a checked model: the plan, the machine that steps through it, and the generated code that runs its loops fast."""
