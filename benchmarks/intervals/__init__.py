"""Prediction intervals and sets: their coverage and their width on test rows, beside conformalised quantile trees."""
