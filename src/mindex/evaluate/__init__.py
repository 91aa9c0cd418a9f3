"""Evaluation (`mindex eval`): question sets with known answers, run against a memory populated for it."""
