"""The values that flow through ctxctl: frozen, standard library only."""
