"""``import laminar_jit as lj``: every public name is there, and no module takes its place."""

from __future__ import annotations

import pkgutil

import pytest

import laminar_jit as lj


@pytest.mark.parametrize("name", lj.__all__)
def test_a_public_name_is_what_its_module_defines(name: str) -> None:
    assert callable(getattr(lj, name))
    assert getattr(lj, name).__doc__


def test_no_module_has_the_name_of_something_public() -> None:
    """Importing such a module would silently replace the function by the module."""
    # lj.sql is called and imported from: its module is callable, so nothing is replaced (decision 060).
    modules = {module.name for module in pkgutil.iter_modules(lj.__path__)}
    assert modules & set(lj.__all__) == {"sql"}


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="tumbel"):
        lj.tumbel  # noqa: B018
