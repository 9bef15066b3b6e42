"""What TRES lists say."""

import polars as pl
import pytest

from premortem.jobs.tres import tres_count, with_tres_counts


@pytest.mark.parametrize(
    ("text", "resource", "amount"),
    [
        ("billing=4,cpu=8,mem=16G,node=2", "cpu", 8),
        ("billing=4,cpu=8,mem=16G,node=2", "node", 2),
        ("billing=4,cpu=8,mem=16G,node=2", "mem", 16384),
        ("cpu=8,mem=4000M", "mem", 4000),
        ("mem=500", "mem", 500),
        ("cpu=2K", "cpu", 2048),
        ("cpu=8", "mem", None),
        ("gres/cpu=3", "cpu", None),
        ("", "cpu", None),
        ("cpu=8,gres/gpu=2", "gres/gpu", 2),
        ("gres/gpu:a100=2,gres/gpu=2", "gres/gpu", 2),
        ("gres/gpu:a100=2,cpu=4,gres/gpu:v100=1", "gres/gpu", 3),
        ("cpu=8,gres/gpumem=40G", "gres/gpu", None),
        ("cpu=8", "gres/gpu", None),
        (None, "gres/gpu", None),
    ],
)
def test_resources(text, resource, amount):
    assert pl.select(tres_count(pl.lit(text, pl.String), resource)).item() == amount


def test_a_sources_own_figure_comes_before_the_lists():
    records = pl.DataFrame(
        {"req_tres": ["cpu=8,mem=4G,node=2", "cpu=1", None], "req_cpus": [4, None, None]}
    )
    counted = with_tres_counts(records)
    assert counted["req_cpus"].to_list() == [4, 1, None]
    assert counted["req_nodes"].to_list() == [2, None, None]
    assert counted["req_memory_mb"].to_list() == [4096.0, None, None]
    assert "alloc_cpus" not in counted.columns
