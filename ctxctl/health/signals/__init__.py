"""What several detectors look at: calls with their results, readings, beginnings of windows."""
