"""How full the window was and when, what filled it, and when it will be full."""
