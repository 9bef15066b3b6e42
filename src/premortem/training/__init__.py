"""How models are made and judged: splits by time, measures, baselines, the benchmark, the audit.

Whatever is judged here was trained on jobs that had ended before the judged ones were submitted.
Nothing here reads files or prints.
"""
