"""What each component of the window may use, and what the calls cost."""
