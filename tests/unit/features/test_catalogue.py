"""Every feature is declared once, and none is used before it is known."""

from dataclasses import replace

import pytest

from premortem.errors import InvalidInput
from premortem.features import layout
from premortem.features.catalogue import (
    CATALOGUE,
    Family,
    Feature,
    FeatureSet,
    feature_set,
    require_known,
)
from premortem.features.points import DEFAULT_POINTS, POSTHOC, START, SUBMIT, running
from premortem.jobs.fields import BY_NAME, KnownAt

FEATURES = {feature.name: feature for feature in CATALOGUE}
RUNNING = running(120)
all_points = pytest.mark.parametrize("point", DEFAULT_POINTS, ids=str)
all_families = pytest.mark.parametrize("family", list(Family))


class TestFeatures:
    def test_they_fill_the_row_of_the_replay_exactly(self):
        assert len(CATALOGUE) == layout.ROW_WIDTH

    def test_names_are_unique(self):
        assert len(FEATURES) == len(CATALOGUE)

    def test_each_is_made_of_fields_and_says_what_it_means(self):
        for feature in CATALOGUE:
            assert feature.inputs
            assert set(feature.inputs) <= set(BY_NAME)
            assert feature.meaning[0].isupper()
            assert feature.meaning.endswith(".")

    @pytest.mark.parametrize(
        ("chapter", "at", "width"),
        [
            ("request", layout.REQUEST_AT, layout.CALENDAR_AT - layout.REQUEST_AT),
            ("calendar", layout.CALENDAR_AT, layout.LOOK_AT - layout.CALENDAR_AT),
            ("comparison", layout.LOOK_AT, layout.KEPT),
            ("run", layout.STARTED_AT, layout.GROUPS_AT - layout.STARTED_AT),
            ("history", layout.GROUPS_AT, layout.GROUPS * layout.GROUP_WIDTH),
        ],
    )
    def test_a_chapter_stands_where_the_kernels_write_it(self, chapter, at, width):
        places = [place for place, f in enumerate(CATALOGUE) if f.chapter == chapter]
        assert places == list(range(at, at + width))

    def test_a_group_of_the_history_stands_where_the_kernels_write_it(self):
        for group, label in (
            (layout.CLUSTER, "cluster"),
            (layout.ACCOUNT, "account"),
            (layout.USER, "user"),
            (layout.NAME, "name"),
            (layout.EXECUTABLE, "executable"),
            (layout.SHAPE, "shape"),
            (layout.PARTITION, "partition"),
            (layout.NODE, "node"),
        ):
            at = layout.GROUPS_AT + group * layout.GROUP_WIDTH
            assert {
                feature.name.split("_")[0] for feature in CATALOGUE[at : at + layout.GROUP_WIDTH]
            } == {label}


class TestKnown:
    @pytest.mark.parametrize("feature", CATALOGUE, ids=lambda feature: feature.name)
    def test_a_feature_is_known_with_the_last_of_its_inputs(self, feature):
        moments = [BY_NAME[name].known for name in feature.inputs]
        assert feature.known in moments
        assert all(moment <= feature.known for moment in moments)

    @pytest.mark.parametrize(
        ("name", "known"),
        [
            ("req_cpus", KnownAt.SUBMIT),
            ("submit_hour", KnownAt.SUBMIT),
            ("user_failure_rate", KnownAt.SUBMIT),
            ("name_cpus_change", KnownAt.SUBMIT),
            ("wait_s", KnownAt.START),
            ("alloc_share", KnownAt.START),
            ("node_failure_rate", KnownAt.START),
            ("limit_share", KnownAt.RUNNING),
            ("user_survivor_failure_rate", KnownAt.RUNNING),
        ],
    )
    def test_some_by_name(self, name, known):
        assert FEATURES[name].known is known

    def test_one_made_of_nothing_of_the_job_is_known_from_the_beginning(self):
        assert Feature("moon", "calendar", (), "Phase of the moon.").known is KnownAt.SUBMIT

    def test_the_order_of_the_inputs_does_not_matter(self):
        for inputs in (("exit_code", "req_cpus"), ("req_cpus", "exit_code")):
            assert Feature("told", "run", inputs, "Told.").known is KnownAt.END


class TestSets:
    @all_points
    @all_families
    def test_a_set_never_holds_a_feature_known_later(self, point, family):
        for feature in feature_set(point, family).features:
            assert feature.known <= point.known
            require_known(feature, point)

    @all_points
    @all_families
    def test_places_are_those_of_the_catalogue(self, point, family):
        chosen = feature_set(point, family)
        assert [CATALOGUE[place] for place in chosen.places] == list(chosen.features)
        assert chosen.names == [feature.name for feature in chosen.features]

    @all_families
    def test_each_point_adds_to_the_one_before(self, family):
        sets = [set(feature_set(point, family).names) for point in (SUBMIT, START, RUNNING)]
        assert sets[0] < sets[1] < sets[2]

    def test_the_moments_of_a_run_have_the_same_features(self):
        assert feature_set(running(60)).places == feature_set(running(3600)).places

    @pytest.mark.parametrize(
        ("name", "point", "field", "known"),
        [
            ("wait_s", SUBMIT, "start_time", "start"),
            ("alloc_share", SUBMIT, "alloc_cpus", "start"),
            ("node_failure_rate", SUBMIT, "node_list", "start"),
            ("limit_share", SUBMIT, "elapsed_s", "running"),
            ("limit_share", START, "elapsed_s", "running"),
            ("user_survivor_failure_rate", START, "elapsed_s", "running"),
        ],
    )
    def test_asking_for_a_later_one_names_it_and_the_field_at_fault(
        self, name, point, field, known
    ):
        with pytest.raises(InvalidInput) as told:
            feature_set(point, names=["req_cpus", name])
        message = str(told.value)
        assert message.startswith(f"{name} cannot be used at {point}")
        assert f"made of {field}," in message
        assert f"known at {known} only" in message

    def test_every_later_feature_is_refused_at_every_earlier_point(self):
        for point in (SUBMIT, START, RUNNING):
            for feature in CATALOGUE:
                if feature.known > point.known:
                    with pytest.raises(InvalidInput, match=feature.name):
                        feature_set(point, names=[feature.name])
                else:
                    assert feature_set(point, names=[feature.name]).features == (feature,)

    def test_a_leaking_feature_of_another_catalogue_is_left_out_or_refused(self):
        leaking = Feature("exit_code", "run", ("req_cpus", "exit_code"), "How it ended.")
        catalogue = (*CATALOGUE, leaking)
        for point in (SUBMIT, START, RUNNING):
            assert "exit_code" not in feature_set(point, catalogue=catalogue).names
            with pytest.raises(InvalidInput, match="made of exit_code, which is known at end only"):
                feature_set(point, names=["exit_code"], catalogue=catalogue)
        assert "exit_code" in feature_set(POSTHOC, catalogue=catalogue).names

    def test_named_features_come_in_the_order_asked_for(self):
        names = ["user_failure_rate", "req_cpus", "submit_hour"]
        chosen = feature_set(SUBMIT, names=names)
        assert chosen.names == names
        assert [CATALOGUE[place].name for place in chosen.places] == names

    def test_names_nobody_knows_are_all_told(self):
        with pytest.raises(InvalidInput, match="no such feature: luck, fate"):
            feature_set(SUBMIT, names=["luck", "req_cpus", "fate"])


class TestFamilies:
    @all_points
    def test_generic_is_all_that_is_known(self, point):
        known = [feature for feature in CATALOGUE if feature.known <= point.known]
        assert list(feature_set(point).features) == known
        assert feature_set(point, Family.GENERIC) == feature_set(point)

    @all_points
    def test_restricted_tells_nothing_of_the_user(self, point):
        about_users = {"user", "uid", "account", "group", "gid", "job_name", "executable"}
        restricted = feature_set(point, Family.RESTRICTED)
        for feature in restricted.features:
            assert not about_users & set(feature.inputs)
        assert {"req_cpus", "submit_hour", "cluster_failure_rate"} <= set(restricted.names)

    @all_points
    def test_swf_needs_nothing_such_logs_do_not_carry(self, point):
        names = set(feature_set(point, Family.SWF).names)
        assert {"req_cpus", "user_failure_rate", "executable_streak"} <= names
        assert not {"req_gpus", "name_failure_rate", "node_failure_rate", "in_array"} & names

    @all_points
    def test_each_is_part_of_the_generic_one(self, point):
        generic = set(feature_set(point).names)
        for family in (Family.RESTRICTED, Family.SWF):
            assert set(feature_set(point, family).names) < generic


class TestFingerprints:
    def test_they_are_stable(self):
        one = Feature("a", "request", ("req_cpus",), "One.")
        assert FeatureSet(SUBMIT, (one,), (0,)).fingerprint == "a7f3a5a4d69b21d5"
        assert feature_set(START).fingerprint == feature_set(START).fingerprint

    def test_every_point_and_family_has_its_own(self):
        sets = [feature_set(point, family) for point in DEFAULT_POINTS for family in Family]
        assert len({chosen.fingerprint for chosen in sets}) == len(sets)

    @pytest.mark.parametrize(
        "change",
        [
            {"name": "b"},
            {"inputs": ("req_nodes",)},
            {"inputs": ("req_cpus", "req_nodes")},
            {"meaning": "Another."},
        ],
    )
    def test_a_feature_that_differs_makes_another(self, change):
        one = Feature("a", "request", ("req_cpus",), "One.")
        other = replace(one, **change)
        sets = [FeatureSet(SUBMIT, (feature,), (0,)) for feature in (one, other)]
        assert sets[0].fingerprint != sets[1].fingerprint

    def test_fewer_or_reordered_features_make_another(self):
        names = feature_set(SUBMIT).names
        prints = {
            feature_set(SUBMIT, names=chosen).fingerprint
            for chosen in (names, names[1:], names[:-1], [*names[1:], names[0]])
        }
        assert len(prints) == 4


def test_chapters_and_fields_can_be_left_out() -> None:
    whole = {f.name for f in feature_set(running(120)).features}
    bare = {f.name for f in feature_set(running(120), without=["script", "usage"]).features}
    assert bare < whole
    gone = whole - bare
    assert {"script_lines", "script_streak", "program_ended", "usage_rss_mb"} <= gone
    assert all(name.startswith(("script_", "program_", "usage_")) for name in gone)
    with pytest.raises(InvalidInput, match="neither a chapter of features nor a field: scripts"):
        feature_set(SUBMIT, without=["scripts"])
