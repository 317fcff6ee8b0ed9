"""Each example runs as its page says; it compares its losses with one device's itself."""

import os
import pathlib
import subprocess
import sys

import pytest

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "jax"
COLLECTIVES = {
    "transformer": "all-reduce",
    "moe": "all-to-all",
    "pipeline": "collective-permute",
    "convolution": "collective-permute",
    "uneven": "all-reduce",
    "contrastive": "collective-permute",
}


def run(script, *args):
    environment = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    command = [sys.executable, str(script), *args]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_all_examples_are_listed():
    scripts = {p.stem for p in EXAMPLES.glob("*.py")} - {"common", "two_processes"}
    assert scripts == set(COLLECTIVES)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_example(name):
    done = run(EXAMPLES / f"{name}.py")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "step 3: loss" in done.stdout and COLLECTIVES[name] in done.stdout


def test_two_processes():
    done = run(EXAMPLES / "two_processes.py")
    assert done.returncode == 0, done.stderr[-2000:]
    assert "process 0: equal to one device" in done.stdout
    assert "process 1: equal to one device" in done.stdout
