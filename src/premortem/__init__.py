"""premortem: which Slurm jobs will fail, why, and what to change, before they run."""

__version__ = "0.1.0"
