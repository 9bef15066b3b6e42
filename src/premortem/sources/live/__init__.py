"""A cluster that can be asked: slurmctld for what is happening, slurmdbd for what has happened.

`port.py` says what can be asked. There are two ways to ask, slurmrestd (`rest.py`) and Slurm's own
commands (`commands.py`); both hand records to the sources that read files, so that a job is the
same however it was learned of. Nothing here keeps anything or decides when to ask.
"""
