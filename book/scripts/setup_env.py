"""Makes the virtual environment and installs what the book is built with, once: a second call returns at once.

Needs only the standard library, because it runs before anything is installed:
`python book/scripts/setup_env.py .venv`. A torch that is in the environment already and satisfies the pin stays.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STAMP = "installed-for-one-launch"
VERSIONS = ((3, 10), (3, 13))


def main(folder: str) -> int:
    """Create `folder` if need be, install into it if anything changed. Returns the exit code."""
    venv = (ROOT / folder).resolve()
    python = venv / "bin" / "python"
    version = python_version(str(python)) if python.exists() else None
    if version is None:
        if not create(venv, python):
            return 1
        version = python_version(str(python))
    if version is None or not VERSIONS[0] <= version[:2] <= VERSIONS[1]:
        return fail(
            f"{folder} has Python {'.'.join(map(str, version or ('?',)))}, but 3.10 to 3.13 is needed.\n"
            f"Remove it and name another: rm -rf {folder} && make book PYTHON=python3.12"
        )
    wanted = key(version)
    stamp = venv / STAMP
    if stamp.exists() and stamp.read_text() == wanted:
        return 0
    print(f"Installing into {folder} (the first time takes minutes) ...", flush=True)
    start = time.perf_counter()
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "-r", "requirements.txt", "-e", "."]
    if subprocess.run(pip, cwd=ROOT).returncode:
        return fail(
            "pip could not install what the book needs; its message is above. Run the same command again once that is\n"
            "mended (a broken connection, a full disk): what was downloaded is kept."
        )
    stamp.write_text(wanted)
    print(f"Installed in {time.perf_counter() - start:.0f} s.", flush=True)
    return 0


def create(venv: Path, python: Path) -> bool:
    """Create the virtual environment with the running Python."""
    print(f"Creating {venv.name} with Python {sys.version.split()[0]} ...", flush=True)
    done = subprocess.run([sys.executable, "-m", "venv", "--clear", str(venv)], capture_output=True, text=True)
    if done.returncode == 0 and python.exists():
        return True
    fail(
        f"{sys.executable} cannot create a virtual environment:\n{done.stdout}{done.stderr}\n"
        "On Debian and Ubuntu install the package python3-venv; elsewhere name a complete Python: make book PYTHON=..."
    )
    return False


def python_version(python: str) -> tuple[int, ...] | None:
    """Version of an interpreter, or None if it does not run (its base was removed) or has no pip."""
    code = "import sys, pip; print(*sys.version_info[:3])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
    except OSError:
        return None
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else None


def key(version: tuple[int, ...]) -> str:
    """Hash of what decides what is installed: the pins, the package's metadata, the Python, the checkout's place."""
    parts = [(ROOT / name).read_bytes() for name in ("requirements.txt", "pyproject.toml")]
    return hashlib.sha256(b"\0".join([*parts, repr(version).encode(), str(ROOT).encode()])).hexdigest()


def fail(message: str) -> int:
    """Print what went wrong and what to do."""
    print(f"\nERROR: {message}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else ".venv"))
