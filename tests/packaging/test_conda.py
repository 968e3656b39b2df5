"""The recipe of a conda package asks for what pyproject.toml asks for."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement

ELSEWHERE = {"cmeel-eigen": "eigen"}  # names of the same things in conda


@pytest.fixture(scope="module")
def settings(source):
    return tomllib.loads((source / "pyproject.toml").read_text())


@pytest.fixture(scope="module")
def recipe(source):
    return (source / "conda" / "recipe.yaml").read_text()


def asked(recipe, section):
    """What a section of the requirements lists: names and versions, as pip writes them."""
    listed = re.search(rf"^  {section}:\n((?:    .*\n)+)", recipe, re.M)[1]
    lines = (line.partition("#")[0].strip() for line in listed.splitlines())
    found = (
        Requirement(line[2:])
        for line in lines
        if line.startswith("- ") and "{" not in line and ":" not in line
    )
    return {item.name: item.specifier for item in found}


def wanted(requirements):
    found = map(Requirement, requirements)
    return {ELSEWHERE.get(item.name, item.name): item.specifier for item in found}


def test_it_runs_with_what_pip_installs(settings, recipe):
    project = settings["project"]
    python = {"python": Requirement("python" + project["requires-python"]).specifier}
    assert asked(recipe, "run") == wanted(project["dependencies"]) | python


def test_it_is_built_with_what_pip_builds_with(settings, recipe):
    host = asked(recipe, "host")
    for name, version in wanted(settings["build-system"]["requires"]).items():
        assert host.get(name) == version, name
    assert (
        asked(recipe, "build")["cmake"]
        == Requirement("cmake" + settings["tool"]["scikit-build"]["cmake"]["version"]).specifier
    )


def test_a_package_is_built_for_each_python_of_the_variants(settings, recipe):
    # With a version there, rattler-build renders one package, for the newest Python alone.
    host = re.search(r"^  host:\n((?:    .*\n)+)", recipe, re.M)[1]
    assert re.search(r"^    - python(?: #.*)?$", host, re.M)
    least = settings["project"]["requires-python"].removeprefix(">=")
    assert f'match(python, "<{least}")' in recipe


def test_version_licence_and_summary_are_ours(settings, recipe):
    project = settings["project"]
    for key, text in {
        "version": f'"{project["version"]}"',
        "license": project["license"],
        "summary": project["description"],
    }.items():
        assert re.search(rf"^  {key}: (.*)$", recipe, re.M)[1] == text
    for pattern in project["license-files"]:
        assert pattern.replace("*", "MPL-2.0.txt") in recipe
