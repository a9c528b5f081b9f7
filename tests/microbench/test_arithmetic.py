# SPDX-License-Identifier: GPL-2.0-only
"""What the timed loops draw and compute: random paths, offsets beyond 4 GiB, counting names."""

import subprocess
from itertools import pairwise

import pytest
from scipy.stats import chisquare, kstest

from tests.support import bench

PATHS = 8**5


def draw(*argv):
    bench.build("tests")
    argv = [str(bench.BUILD / "tests" / "draw"), *map(str, argv)]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize(("seed", "stream"), [(1, 0), (1, 1), (2, 0), (0, 300)])
def test_paths_are_uniform(seed, stream):
    """All 8^5 paths are drawn, as often as chance has it: neither too unevenly nor too evenly."""
    counts = [int(c) for c in draw("paths", seed, stream, 100 * PATHS)]
    assert len(counts) == PATHS
    assert min(counts) > 0
    assert 1e-4 < chisquare(counts).pvalue < 1 - 1e-4


def test_paths_differ_between_workers_and_seeds():
    draws = [tuple(draw("paths", *key, 1000)) for key in [(1, 0), (1, 1), (2, 0), (2, 1)]]
    assert len(set(draws)) == 4
    assert tuple(draw("paths", 1, 0, 1000)) == draws[0]


@pytest.mark.parametrize(
    ("worker", "size"), [(0, 4096), (257, 4096), (1048576, 4096), (65535, 1 << 20)]
)
def test_offsets(worker, size):
    assert int(draw("offset", worker, size)[0]) == worker * size


@pytest.mark.parametrize("first", [0, 8, 14, 0x9E, 0xFFE, 0xFFFFFFC])
def test_names_count(first):
    assert draw("names", first, 4) == [f"share/7.{n:08x}.2" for n in range(first, first + 4)]


@pytest.mark.parametrize(
    "ticks", [0, 1, 2047, 2048, 2049, 4095, 4096, 10**6 + 1, 4294967296, 2**39 - 1]
)
def test_a_bucket_of_latencies_is_known_to_a_thousandth(ticks):
    number, least = map(int, draw("bucket", ticks))
    assert ticks * (1 - 1 / 1024) <= least <= ticks
    assert number == int(draw("bucket", least)[0]) < 30 * 1024
    # Buckets follow on one another without a gap.
    if least:
        assert int(draw("bucket", least - 1)[0]) == number - 1


def test_a_latency_beyond_all_buckets_is_in_the_last():
    assert draw("bucket", 2**63) == draw("bucket", 2**39 - 1)


def gaps(*argv):
    """The nanoseconds between a thousand arrivals, the first of which follows 0."""
    times = [0, *map(int, draw(*argv))]
    return [after - before for before, after in pairwise(times)]


@pytest.mark.parametrize(("seed", "worker"), [(1, 0), (1, 1), (2, 0)])
def test_poisson_arrivals_have_exponential_gaps(seed, worker):
    found = gaps("poisson", seed, worker, 4000)
    assert kstest(found, "expon", args=(0, 250_000)).pvalue > 1e-3
    assert found == gaps("poisson", seed, worker, 4000)


def test_arrivals_differ_between_workers_and_seeds():
    drawn = {tuple(gaps("poisson", *key, 1000)) for key in [(1, 0), (1, 1), (2, 0), (2, 1)]}
    assert len(drawn) == 4


def test_fixed_arrivals_keep_their_rate_from_a_random_phase_on():
    # 3 per second is no whole number of nanoseconds, and must not drift.
    first, *others = gaps("fixed", 1, 0, 3)
    assert 0 <= first <= 333_333_334
    assert set(others) == {333_333_333, 333_333_334}
    assert sum(others) == pytest.approx(999 * 1e9 / 3, abs=2)
    assert first != gaps("fixed", 1, 1, 3)[0]
