"""Settings: the only room that reads files of settings; it builds the options of all the others."""
