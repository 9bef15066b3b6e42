"""What is done with sources, stores and models as a whole: loading, looking up, summing up.

Nothing here parses options or prints; the apps do.
"""
