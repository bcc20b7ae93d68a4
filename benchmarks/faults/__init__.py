"""Faults: operations are killed at random and at exact moments, and no earlier file may be lost.

A subject is one operation: its initial files, its work, and the files that it may leave when it is interrupted. A trial
runs the subject in a process of its own, kills it, checks the files, and lets the next run finish.
"""
