"""Which units leave the window: policies, one file each."""
