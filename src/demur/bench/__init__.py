"""The benchmark: a grid of runs, their results on disk, and what is made of these.

`grid` says what is to be run, `run` runs it, `store` keeps the results; tables, figures and the
report read what `store` kept and nothing else.
"""
