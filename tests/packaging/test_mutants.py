"""The table of mutants stays true to the sources: `python -m tests.mutants` runs it."""

import re

import pytest

from tests.mutants.table import MUTANTS


def test_there_are_sixty_mutants_with_names_of_their_own():
    names = [(mutant.file, mutant.name) for mutant in MUTANTS]
    assert len(names) >= 60
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file}: {mutant.name}")
def test_a_mutant_changes_one_place_and_names_tests_that_exist(source, mutant):
    text = (source / mutant.file).read_text("utf-8")
    changed = mutant.applied(text)
    assert len(changed.splitlines()) == len(text.splitlines())
    for test in mutant.tests.split():
        path, *names = re.split(r"::", test)
        assert (source / path).exists(), test
        assert all(name in (source / path).read_text("utf-8") for name in names), test
