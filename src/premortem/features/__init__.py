"""From job records to rows of numbers a model can learn from, with nothing used before it is known.

`catalogue` says what features there are and when each is known; `replay` computes them, by playing
history back in order of time; `points` says for which moments rows are made.
"""
