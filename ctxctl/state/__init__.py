"""What outlives a window: checkpoint, progress, notes."""
