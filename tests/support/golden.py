# SPDX-License-Identifier: GPL-2.0-only
"""How a golden file is written: a line for each key."""

import json
from collections.abc import Mapping
from typing import Any


def format_golden(content: Mapping[str, Any]) -> str:
    """A dictionary as JSON."""
    lines = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in content.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"
