"""The page on scale has the figures of its script, and the simulation obeys the limits that it is given."""

from __future__ import annotations

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "docs/scale"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    specification = importlib.util.spec_from_file_location("simulate", FOLDER / "simulate.py")
    assert specification and specification.loader
    module = importlib.util.module_from_spec(specification)
    sys.modules["simulate"] = module
    specification.loader.exec_module(module)
    return module


def measured() -> dict:
    return json.loads((FOLDER / "measured.json").read_text())


def test_the_page_has_the_figures_of_the_script(script: ModuleType) -> None:
    text = (FOLDER.parent / "scale.md").read_text()
    assert script.page(text, measured()) == text
    other = measured()
    other["log"]["seconds"] *= 2
    assert script.page(text, other) != text


def test_a_page_without_the_marks_of_a_table_is_refused(script: ModuleType) -> None:
    with pytest.raises(ValueError, match="no marks of `arithmetic`"):
        script.page("# Scale\n", measured())


def test_the_measured_ratio_is_that_of_the_medians() -> None:
    compared = measured()["compared"]
    assert len(compared["single_seconds"]) == len(compared["ray_program_seconds"]) == 3
    medians = [sorted(compared[name])[1] for name in ("ray_program_seconds", "single_seconds")]
    assert compared["ratio"] == pytest.approx(medians[0] / medians[1], abs=0.001)


@pytest.mark.parametrize(
    ("world", "processes", "limit"), [(0, 16, "pace of the largest host"), (1, 16, "commits"), (2, 64, "commits")]
)
def test_a_thousand_processes_do_what_some_do(world: int, processes: int, limit: str, script: ModuleType) -> None:
    assumed, costs = list(script.WORLDS.values())[world], script.Costs.of(measured())
    some, thousand = (script.simulate(assumed, costs, count) for count in (processes, 1_000))
    assert some.limit == thousand.limit == limit
    assert some.seconds == pytest.approx(thousand.seconds, rel=0.01)
    fewer = script.simulate(assumed, costs, processes // 4)
    # Until then the time is that of one process, shared.
    shared = script.simulate(assumed, costs, 1).seconds / (processes // 4)
    assert fewer.limit == "processors" and fewer.seconds > 1.25 * some.seconds
    assert fewer.seconds == pytest.approx(shared, rel=0.15)


#: Limits that nothing reaches, for a network of ten hosts of 5,000 accounts.
UNLIMITED = {
    "large_hosts": 10,
    "large_host_accounts": 5_000,
    "small_hosts": 0,
    "host_limit": 1e12,
    "network_bytes": 1e18,
    "request_seconds": 0,
    "requests_per_second": 1e12,
}


@pytest.mark.parametrize(
    ("limits", "processes", "seconds", "limit"),
    [
        # A host is read by one process, and another one does not help it.
        ({"host_limit": 10}, 1, 500, "pace of the largest host"),
        ({"host_limit": 10}, 100, 500, "pace of the largest host"),
        ({"network_bytes": 1e6, "compression": 0.5, "repository_bytes": 100}, 10, 2.5, "network"),
        # A page of a host is a commit of two requests, which no other process makes at the same time.
        ({"request_seconds": 0.1, "repository_bytes": 100}, 10, 10, "commits"),
        # Each process reads each of fifty entries.
        ({"requests_per_second": 100, "repository_bytes": 100}, 10, 5, "reads of the log"),
    ],
)
def test_the_slowest_resource_decides(
    limits: dict[str, float], processes: int, seconds: float, limit: str, script: ModuleType
) -> None:
    costs = script.Costs(repository_seconds=1e-9, byte_seconds=0, present_seconds=0, entry_seconds=0)
    outcome = script.simulate(script.World(**UNLIMITED | limits), costs, processes)
    assert (outcome.seconds, outcome.limit) == (pytest.approx(seconds, rel=0.01), limit)
    assert outcome.busy[limit] == pytest.approx(1, rel=0.01)


def test_processors_share_the_lists(script: ModuleType) -> None:
    costs = script.Costs(repository_seconds=0.001, byte_seconds=1e-6, present_seconds=0, entry_seconds=0)
    world = script.World(**UNLIMITED | {"repository_bytes": 1_000})
    times = [script.simulate(world, costs, processes).seconds for processes in (1, 2, 5, 10, 20)]
    assert times == pytest.approx([100, 50, 20, 10, 10])
    assert script.simulate(replace(world, small_hosts=1, small_host_accounts=0), costs, 1).seconds == pytest.approx(100)


def test_processes_without_a_list_ask_for_those_of_others(script: ModuleType) -> None:
    world = script.World(**UNLIMITED)
    assert script.lease_requests(world, 10) == 0
    assert script.lease_requests(world, 40) == pytest.approx(30 * 10 * 2 / 15)


def test_costs_follow_from_repositories_of_two_sizes(script: ModuleType) -> None:
    compared = {
        "single_processor_seconds": [11, 9, 10],
        "repositories": 1_000,
        "bytes": 1_000_000,
        "present_processor_seconds": 1,
    }
    large = {"processor_seconds": [2, 2, 2], "repositories": 100, "bytes": 1_100_000}
    costs = script.Costs.of({"compared": compared, "large": large, "log": {"seconds": 1, "entries": 4}})
    assert costs.byte_seconds == pytest.approx(1e-6)
    assert costs.repository_seconds == pytest.approx(0.009)
    assert (costs.present_seconds, costs.entry_seconds) == (0.001, 0.25)
