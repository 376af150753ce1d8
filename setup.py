"""Finds the packages of the three layers, so that a new sub-package cannot be forgotten."""

import tomllib
from pathlib import Path

from setuptools import find_packages, setup

PROJECT = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text())
LAYERS = PROJECT["tool"]["setuptools"]["package-dir"]

setup(
    packages=[
        package
        for name, folder in LAYERS.items()
        for package in [name, *(f"{name}.{below}" for below in find_packages(folder))]
    ]
)
