"""Faults: operations are killed at random and at exact points, and nothing that was there may be lost.

A subject is one operation: what it starts from, what it does, and which files of its own may lie there half-way. A
trial kills it in a process of its own, looks at what is left, and lets the next run finish.
"""
