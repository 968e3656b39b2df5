"""Nothing public is left out of the generated calls."""

from random import Random

import pytest

from . import surface
from .objects import GOOD_FOR, bound_methods, methods_of
from .values import GOOD


def test_every_public_function_and_class_is_called_or_left_out_with_a_reason():
    called = {function for _, function in surface.functions() if not hasattr(function, "__self__")}
    missing = [
        name
        for name, value in surface.public().items()
        if value not in called and name.rsplit(".", 1)[-1] not in surface.LEFT_OUT
    ]
    assert missing == []


def test_every_public_method_of_a_public_class_is_called_or_left_out_with_a_reason():
    called = {(base, method) for _, kind, method, _ in bound_methods() for base in kind.__mro__}
    missing = [
        f"{name}.{method}"
        for name, value in surface.public().items()
        if isinstance(value, type)
        for method in methods_of(value)
        if (value, method) not in called and method not in surface.METHODS_LEFT_OUT
    ]
    assert missing == []


def test_what_is_left_out_exists():
    names = {name.rsplit(".", 1)[-1] for name in surface.public()} | {"experiments", "typing"}
    assert set(surface.LEFT_OUT) <= names


@pytest.mark.parametrize("name", sorted(GOOD_FOR))
def test_a_good_value_is_for_a_parameter_that_exists(name):
    function, _, parameter = name.rpartition(".")
    assert any(
        p.name == parameter and (not function or found.rsplit(".", 1)[-1] == function)
        for found, called in surface.functions()
        for p in surface.parameters(called)
    )
    assert parameter not in GOOD or function


def test_a_case_is_the_same_every_time():
    for name, function in surface.functions()[::7]:
        one, two = (surface.arguments(Random("1/2"), function, name) for _ in range(2))
        assert one.keys() == two.keys()
