"""How good the defaults are where rows are few."""
