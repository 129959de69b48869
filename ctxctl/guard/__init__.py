"""What goes back into a window: injected instructions and credentials in it. Not a security boundary."""
