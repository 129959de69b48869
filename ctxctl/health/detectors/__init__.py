"""One file per failure mode: what it looks like in a session, and what to do about it."""
