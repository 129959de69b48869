"""What people and programs read: one builder per result, one renderer per file."""
