"""Where job records come from. A source streams batches of checked records and sets bad ones aside.

Sources know formats and nothing of stores: they may import `jobs`, and nothing to the right of it.
"""
