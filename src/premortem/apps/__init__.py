"""The faces of premortem: each parses what it is given, calls, and renders what it gets. Thin."""
