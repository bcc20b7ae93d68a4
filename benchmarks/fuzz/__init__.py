"""Fuzzing: millions of random and damaged inputs, which must be handled correctly or refused in a sentence."""
