"""Replaying a recorded transcript under other policies, and what each would have cost and lost."""
