"""What a folder of results says of the sweep that made them, in its file ``sweep.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from .._base import files
from .._base.archive import reading
from .._base.build import build_info
from .._base.described import Described, differences
from ._cases import Case, Plan, key_of
from ._code import Code, changes
from ._identity import Identity

NAME = "sweep.json"
FORMAT = 1  # raised whenever older versions could misread what this one writes

Label = bool | int | float | str


@dataclass
class Record:
    """A sweep: what its results rest on, and its cases so far."""

    digest: str
    code: dict[str, Code]
    values: dict[str, Described]  # by the name of a value, its entries
    changing: list[str] = field(default_factory=list)  # values that the runs themselves change
    axes: dict[str, list[Label]] | None = None  # of a grid
    cases: dict[str, dict[str, Label]] = field(default_factory=dict)  # by their key
    brackets: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, found: Identity, plan: Plan) -> Record:
        """The record of a sweep that begins."""
        axes = plan.shape and {name: [label(x) for x in values] for name, values in plan.shape.items()}
        return cls(found.digest(), found.code, found.values, axes=axes, cases=_labelled(plan.listed))

    @classmethod
    def read(cls, folder: Path) -> Record | None:
        """The record of a folder, or None if it has none."""
        file = folder / NAME
        if not file.is_file():
            return None
        with reading(file, "folder"):
            content = json.loads(file.read_text("utf-8"))
            header = content.pop("header")
            if header["magic"] != "mfcore sweep" or header["format"] != FORMAT:
                raise ValueError(f"mfcore {header['version']} wrote it in another format")
            return cls(**content)

    def write(self, folder: Path) -> None:
        """Write the record; the file is there whole or not at all."""
        header = {"magic": "mfcore sweep", "format": FORMAT, "version": build_info()["version"]}
        text = json.dumps({"header": header, **asdict(self)}, indent=1)
        files.replace(folder / NAME, lambda file: file.write(text.encode()), "folder")

    def changes(self, given: Record) -> list[str]:
        """List what has changed from this sweep to the one given, in words; nothing if they are the same."""
        found: list[str] = []
        for name, code in given.code.items():
            old = self.code.get(name)
            found += changes(name, old, code) if old else [f"the code of {name} is new"]
        found += [f"the code of {name} is gone" for name in self.code if name not in given.code]
        # An entry of a file (not of code, which may read a value by another way) has no part in sweeps all
        # of whose cases set it.
        both = set() if given.code else set(self.axes or ()) & set(given.axes or ())
        unused = {
            name
            for name in {*self.values, *given.values}
            if name in self.changing or any(name == axis or name.startswith(f"{axis}.") for axis in both)
        }
        before, now = (
            {key: x for name in record.values if name not in unused for key, x in record.values[name].items()}
            for record in (self, given)
        )
        return [*found, *filter(None, [differences(before, now)])]

    def add(self, given: Record) -> None:
        """Take the cases of another sweep with the same function."""
        if not self.cases:
            self.axes = given.axes
        elif self.axes is not None and given.axes is not None and set(self.axes) == set(given.axes):
            for name, values in given.axes.items():
                self.axes[name] += [x for x in values if not any(same(x, y) for y in self.axes[name])]
        else:
            self.axes = None
        self.add_cases(given.cases)

    def add_cases(self, cases: Mapping[str, dict[str, Label]]) -> None:
        """Take cases by their key."""
        self.cases = {**self.cases, **cases}


def labels_of(case: Case) -> dict[str, Label]:
    """The values of a case as axes name them."""
    return {name: label(value) for name, value in case.items()}


def label(value: Any) -> Label:
    """A number or word as it is, anything else as Python shows it."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float | str) else repr(value)


def same(one: Label, other: Label) -> bool:
    """Whether two labels name the same value: 1, 1.0 and True are different ones."""
    return json.dumps(one) == json.dumps(other)


def _labelled(cases: list[Case]) -> dict[str, dict[str, Label]]:
    return {key_of(case): labels_of(case) for case in cases}
