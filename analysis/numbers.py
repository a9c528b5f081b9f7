# SPDX-License-Identifier: GPL-2.0-only
"""Formats numbers for people."""

from fscale.analysis.summary import Ratio

PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def rate(value: float) -> str:
    """Three significant digits and a prefix: 4523000 -> "4.52 M"."""
    for factor, prefix in PREFIXES:
        if value >= 0.9995 * factor:
            return f"{_digits(value / factor)} {prefix}"
    return _digits(value)


def _digits(value: float) -> str:
    if value >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def times(value: float) -> str:
    """A ratio: 1.9731 -> "1.97x"."""
    return f"{_digits(value)}\u00d7"


def interval(ratio: Ratio) -> str:
    """A ratio's interval: "1.85-2.02"."""
    return f"{_digits(ratio.low)}\u2013{_digits(ratio.high)}"


def microseconds(seconds: float) -> str:
    """Seconds in microseconds: 2.21e-7 -> "0.221"."""
    micro = seconds * 1e6
    return f"{micro:.3f}" if micro < 1 else _digits(micro)


def span(seconds: float) -> str:
    """A duration: 3725 -> "1 h 2 min"."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
