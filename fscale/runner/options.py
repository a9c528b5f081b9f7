# SPDX-License-Identifier: GPL-2.0-only
"""The options of workloads: checks their values, and combines those of a sweep."""

import contextlib
import itertools
import re
from collections.abc import Collection, Mapping

from fscale.model.alternatives import first_twice
from fscale.model.bench import Descriptor, OptionHelp
from fscale.model.catalogue import suggest
from fscale.model.config import Options, OptionValues, Suite, parse_size
from fscale.model.errors import FscaleError

_NUMBER = re.compile(r"-?[0-9]{1,18}")


def resolve(suite: Suite, descriptors: Mapping[str, Descriptor]) -> Suite:
    """Check the workloads and options of a suite, and return it with the values that these take.

    A text with commas is a list of values, unless the option's default is any text, which may have
    commas of its own. A size such as 64k is a number. A list of several values makes a sweep.

    Raises:
        FscaleError: a workload or an option does not exist (with similar names), a value is none
            of the option, or is given twice, or there are arrivals without a rate.
    """
    for name in [] if suite.workloads == "all" else suite.workloads:
        if name not in descriptors:
            raise FscaleError(f"unknown workload {name}{suggest(name, descriptors)}")
    resolved: dict[str, OptionValues] = {}
    for name, options in suite.options.items():
        if name != "all" and name not in descriptors:
            raise FscaleError(f"options for unknown workload {name}{suggest(name, descriptors)}")
        group = descriptors.values() if name == "all" else [descriptors[name]]
        known = {option.name for d in group for option in d.options}
        # What is not measured may take other values.
        measured = workloads_of(suite, descriptors) if name == "all" else [name]
        resolved[name] = {}
        for key, value in options.items():
            if key not in known:
                if name == "all" and key in descriptors:
                    raise FscaleError(
                        f"{key} is a workload and no option; give {key}.OPTION=VALUE with an "
                        "option of `fscale list workloads`"
                    )
                raise FscaleError(f"{name} has no option {key}{suggest(key, known)}")
            takers = [o for d in measured for o in descriptors[d].options if o.name == key]
            try:
                values = [_typed(one, takers) for one in _split(value, takers)]
            except ValueError as error:
                raise FscaleError(f"{name}: {error}") from None
            if twice := first_twice(values):
                raise FscaleError(
                    f"{name}: option {key} has the value {twice} twice; give each value once"
                )
            resolved[name][key] = values if len(values) > 1 else values[0]
    suite = suite.model_copy(update={"options": resolved})
    for name in workloads_of(suite, descriptors):
        if descriptors[name].definition is not None:
            continue  # options of a user's own load mean what its files say
        points = combine(suite, descriptors[name])
        if any("arrival" in point and not point.get("rate") for point in points):
            raise FscaleError(
                f"{name}: option arrival says how operations arrive at a rate; give option rate, "
                "too"
            )
    return suite


def refuse_idle(
    asked: Mapping[str, Collection[str]], suite: Suite, descriptors: Mapping[str, Descriptor]
) -> None:
    """Refuse options of the command line, by workload or "all", that would change nothing.

    Raises:
        FscaleError: no workload that is measured has one.
    """
    measured = workloads_of(suite, descriptors)
    for name, keys in asked.items():
        if name not in ("all", *measured):
            raise FscaleError(
                f"--option {name}.{min(keys)}: {name} is not measured; leave the option out, or "
                f"measure {name}"
            )
        takers = measured if name == "all" else [name]
        known = {option.name for taker in takers for option in descriptors[taker].options}
        for key in keys:
            if key not in known:
                raise FscaleError(
                    f"--option {key}: no workload that is measured has it; leave it out, or give "
                    "another --workload"
                )


def combine(suite: Suite, descriptor: Descriptor) -> list[Options]:
    """Return the options of a workload's points: one combination of values for each.

    They are those for "all" that the workload knows, overridden by its own.
    """
    known = {option.name for option in descriptor.options}
    values = {k: v for k, v in suite.options.get("all", {}).items() if k in known}
    values |= suite.options.get(descriptor.id, {})
    lists = [value if isinstance(value, list) else [value] for value in values.values()]
    return [dict(zip(values, one, strict=True)) for one in itertools.product(*lists)]


def workloads_of(suite: Suite, descriptors: Mapping[str, Descriptor]) -> list[str]:
    """Return the workloads of a suite, each once; "all" leaves out those that are `apart`."""
    if suite.workloads == "all":
        return [name for name, descriptor in descriptors.items() if not descriptor.apart]
    return list(dict.fromkeys(suite.workloads))


def read_value(text: str) -> int | str:
    """Return the number that a text is, else the text."""
    return int(text) if _NUMBER.fullmatch(text) else text


def _split(value: int | str | list[int | str], takers: list[OptionHelp]) -> list[int | str]:
    if isinstance(value, list):
        return value
    any_text = any(not o.choices and isinstance(o.default, str) for o in takers)
    if isinstance(value, int) or any_text or not takers:
        return [value]
    return [read_value(text) for text in value.split(",")]


def _typed(value: int | str, takers: list[OptionHelp]) -> int | str:
    """Return a value as the options take it; ValueError if one of them does not."""
    typed = value
    for option in takers:
        number = option.least is not None
        if number and isinstance(value, str) and value[-1:].isalpha():
            with contextlib.suppress(ValueError):
                typed = parse_size(value)
        if not option.accepts(typed):
            raise ValueError(option.refusal(value))
        typed = int(typed) if number else typed
    return typed
