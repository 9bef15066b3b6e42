"""When a model is not to be relied on: no better than chance, than a rule, or not to be judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from trainings import judged_otherwise, small_training

from premortem.training.doubts import doubts
from premortem.training.report import report_of
from premortem.training.train import Training


@pytest.fixture(scope="module")
def training() -> Training:
    return small_training()


def test_a_good_model_is_not_doubted(training: Training) -> None:
    outcomes = training.points["submit"].judged.outcomes
    only = judged_otherwise(at_submission(training), risk=0.1 + 0.8 * outcomes)
    assert doubts(report_of(only)) == []


def test_one_that_a_rule_beats_is_told_with_the_rule(training: Training) -> None:
    judged = training.points["submit"].judged
    # Better than chance by a little: one failure is foretold.
    risk = np.zeros(len(judged.outcomes))
    risk[np.flatnonzero(judged.outcomes)[0]] = 1.0
    (told,) = doubts(report_of(judged_otherwise(at_submission(training), risk=risk)))
    assert told.startswith("at submit a simple rule is no worse")
    assert "user_name_rate (a job fails as often as others of its user and name did)" in told
    assert "may help" in told


def test_one_no_better_than_chance_is_told(training: Training) -> None:
    outcomes = training.points["submit"].judged.outcomes
    wrong = judged_otherwise(at_submission(training), risk=0.9 - 0.8 * outcomes)
    (told,) = doubts(report_of(wrong))
    assert told.startswith("at submit the model is no better than chance (AUC 0.000, ")


def test_one_that_nothing_can_judge_is_told(training: Training) -> None:
    fine = np.zeros(len(training.points["submit"].judged.outcomes))
    (told,) = doubts(report_of(judged_otherwise(at_submission(training), outcomes=fine)))
    assert "the latest jobs all ended alike" in told


def at_submission(training: Training) -> Training:
    return replace(training, points={"submit": training.points["submit"]})
