"""Whether a transcript could be sent as it stands: pairs, ids, content, the chain of records, and the lines themselves.

`check` reads and names what is wrong; `repair` writes the nearest transcript that is right.
"""
