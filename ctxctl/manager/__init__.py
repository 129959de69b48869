"""The manager that an agent loop calls: hooks, decisions, and the window that they are about."""
