"""Reproduce the paper's tables and figures: ``python -m benchmarks paper <name>``.

One module per group of experiments declares its runs, and turns finished runs into tables, figures and verdicts.
"""
