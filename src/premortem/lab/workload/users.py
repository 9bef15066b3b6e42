"""The users of a workload: who has which habits, runs which kinds, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from premortem.lab.workload.catalogue import KINDS
from premortem.lab.workload.habits import HABITS, Habit
from premortem.lab.workload.kinds import Kind

# Chosen by what they are for, not by fields of study.
_CHAIN = ("prepare_case", "solve_case", "plot_case")
_YIELDING = ("backfill_sweep",)
_URGENT = ("urgent_forecast",)
_FIELDS = (
    ("md_relax", "md_production", "trajectory_stats", "nbody_galaxy", "checksum_all"),
    ("cfd_channel", "cfd_mesh", "fem_bridge", "wave_field", "archive_run"),
    ("scf_energy", "geometry_opt", "frequencies", "crystal_scan", "spectra_fit"),
    ("read_align", "assemble", "variant_call", "sample_array", "count_table"),
    ("fasta_filter", "blast_parse", "phylogeny", "count_table", "docking"),
    ("train_resnet", "finetune", "gradient_boost", "hyper_sweep", "evaluate_model"),
    ("notebook_run", "bootstrap_ci", "stats_table", "feature_build", "gradient_boost"),
    ("climate_month", "lattice_qcd", "montecarlo_dose", "log_digest", "ingest_stream"),
    ("docking", "docking_screen", "image_segment", "protein_fold", "spectra_fit"),
    ("stage_in", "raytrace_frames", "log_digest", "ingest_stream", "montecarlo_dose"),
)


@dataclass(frozen=True, slots=True)
class User:
    """One user: a name in the lab, a habit, kinds by liking, and how active they are."""

    name: str
    habit: Habit
    kinds: dict[Kind, float]
    activity: float
    mail: bool


def population(seed: int, names: Sequence[str]) -> list[User]:
    """Users with these names: every habit and every kind occurs, each time in other hands."""
    by_chance = Random(f"population {seed}")
    fields = list(_FIELDS)
    by_chance.shuffle(fields)
    habits = list(HABITS)
    by_chance.shuffle(habits)
    users = []
    for number, name in enumerate(names):
        habit = habits[number % len(habits)]
        chosen = list(fields[number % len(fields)])
        chosen.append(by_chance.choice(sorted(KINDS.keys() - set(_CHAIN + _YIELDING + _URGENT))))
        likings = {KINDS[kind]: by_chance.choice((1.0, 2.0, 4.0)) for kind in chosen}
        if habit.name in ("gambler", "sweeper", "optimist", "hoarder"):
            likings |= {KINDS[kind]: 1.2 for kind in _YIELDING}
        if habit.name in ("hasty", "routine"):
            likings |= {KINDS[kind]: 1.2 for kind in _URGENT}
        activity = by_chance.uniform(0.6, 1.8)
        users.append(User(name, habit, likings, activity, by_chance.random() < 0.3))
    return users


def chain() -> list[Kind]:
    """Three kinds of which each waits for the one before."""
    return [KINDS[name] for name in _CHAIN]
