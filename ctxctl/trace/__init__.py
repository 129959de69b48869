"""From a transcript to what is measured of it: counted columns per block, and later units, turns and references."""
