"""What a transcript says about its task, one fact per file, found while its blocks are read."""
