"""Agents whose hooks ctxctl can be, one file each."""
