from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from onelaunch.doctor import COMPILERS
from onelaunch.tape import executors, native


@pytest.fixture(scope="session")
def native_loop() -> None:
    """The C++ loop, compiled if need be, in the cache where a user would have it."""
    if not native.is_built() and not any(shutil.which(name) for name in COMPILERS):
        pytest.skip(f"no C++ compiler here ({', '.join(COMPILERS)}): the native executor cannot be compiled")
    native.build()


@pytest.fixture
def play_with(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Calls that name the executor of the graphs that the test records."""

    def use(name: str) -> None:
        if name == "native":
            request.getfixturevalue("native_loop")
        monkeypatch.setenv(executors.VARIABLE, name)

    return use
