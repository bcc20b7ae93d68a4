"""The paper's tables and figures, made again: ``python -m benchmarks paper <name>``.

One module per group of experiments declares its runs and turns finished ones into tables, figures and verdicts.
"""
