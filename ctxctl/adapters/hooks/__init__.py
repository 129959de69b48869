"""Hooks of agents: what they call before a compaction and at the start of a session."""
