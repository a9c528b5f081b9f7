# SPDX-License-Identifier: GPL-2.0-only
"""Text is measured in its own font, wrapped and shortened to a width, whatever it is."""

import matplotlib as mpl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fscale.analysis.style import RC
from fscale.analysis.textfit import ELLIPSIS, TICK, TITLE, em, shortened, text_width, wrapped

TEXTS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=80)
WIDTHS = st.floats(0.2, 4)


def test_a_text_is_as_wide_as_its_font_makes_it() -> None:
    with mpl.rc_context(RC):
        assert em(TICK) == pytest.approx(8 / 72)
        assert text_width("MMMM", TICK) == pytest.approx(4 * text_width("M", TICK), rel=0.05)
        assert text_width("iiii", TICK) < text_width("MMMM", TICK) < text_width("MMMM", TITLE)
    with mpl.rc_context({**RC, "font.family": ["STIXGeneral"]}):
        narrow = text_width("throughput", TICK)
    with mpl.rc_context(RC):
        assert narrow < text_width("throughput", TICK)


@given(text=TEXTS, width=WIDTHS)
def test_wrapped_lines_fit_and_no_character_is_lost(text: str, width: float) -> None:
    with mpl.rc_context(RC):
        lines = wrapped(text, width, TITLE).split("\n")
        assert "".join(lines) == text
        assert all(text_width(line, TITLE) <= width or len(line) == 1 for line in lines)


@given(text=TEXTS, width=WIDTHS)
def test_a_shortened_text_keeps_both_ends(text: str, width: float) -> None:
    with mpl.rc_context(RC):
        shown = shortened(text, width, TICK)
        assert text_width(shown, TICK) <= width or len(shown) <= 2
        if text_width(text, TICK) <= width:
            assert shown == text
        else:
            begin, _, end = shown.partition(ELLIPSIS)
            assert text.startswith(begin)
            assert text.endswith(end)
            assert len(begin) - len(end) in (0, 1)
