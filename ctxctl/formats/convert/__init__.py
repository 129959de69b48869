"""Conversions: any transcript that is read, as one of the formats that are written. One file per target."""
