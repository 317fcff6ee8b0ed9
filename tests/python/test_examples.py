"""`pip install .` into a new environment, then each example as its page says.

Examples compare their losses with one device's themselves.
"""

import ast
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "jax"
COLLECTIVES = {
    "transformer": "all-reduce",
    "moe": "all-to-all",
    "pipeline": "collective-permute",
    "convolution": "collective-permute",
    "uneven": "all-reduce",
    "contrastive": "collective-permute",
}
MOST_BYTES = 20_000_000  # of the wheel


def shell(command, **environment):
    """Runs in the top folder with nothing of the tests' own Python in the environment."""
    ours = ("XLA_FLAGS", "JAX_PLATFORMS", "PYTHONPATH", "VIRTUAL_ENV")
    kept = {k: v for k, v in os.environ.items() if k not in ours}
    done = subprocess.run(
        command, shell=True, cwd=ROOT, env=kept | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def compiler():
    """That of the build beside, so that its cached objects serve."""
    cache = pathlib.Path(os.environ["GSPMD_BUILD_DIR"], "CMakeCache.txt").read_text()
    return re.search(r"^CMAKE_CXX_COMPILER:\w+=(.*)$", cache, re.M)[1]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """PATH of a new virtual environment, into which `pip install .` has just put the package."""
    folder = tmp_path_factory.mktemp("installed")
    shell(f"{sys.executable} -m venv {folder}/venv")
    path = f"{folder}/venv/bin:{os.environ['PATH']}"
    pins = folder / "constraints.txt"  # the versions of JAX that the other tests run with
    text = (ROOT / "requirements-test.txt").read_text()
    pins.write_text("\n".join(re.findall(r"^(?:jax|jaxlib|numpy)==\S+", text, re.M)))
    printed = shell(f"pip install -c {pins} .", PATH=path, CXX=compiler())
    (size,) = re.findall(r"filename=gspmd-.*\.whl size=(\d+)", printed)
    assert int(size) < MOST_BYTES
    return path


def page_command(script):
    """What the page tells to type: the indented line of its docstring."""
    page = ast.get_docstring(ast.parse(script.read_text()))
    (command,) = re.findall(r"^    (python \S+)$", page, re.M)
    return command


def test_all_examples_are_listed():
    scripts = {p.stem for p in EXAMPLES.glob("*.py")} - {"common", "two_processes"}
    assert scripts == set(COLLECTIVES)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_example(name, environment):
    printed = shell(page_command(EXAMPLES / f"{name}.py"), PATH=environment)
    assert "step 3: loss" in printed and COLLECTIVES[name] in printed


def test_two_processes(environment):
    printed = shell(page_command(EXAMPLES / "two_processes.py"), PATH=environment)
    assert "process 0: equal to one device" in printed
    assert "process 1: equal to one device" in printed


def test_what_is_installed(environment):
    found = shell(
        "cd / && python -c 'import gspmd, pathlib; print(gspmd.__version__, gspmd.__file__)'"
        " && pip show -f gspmd",
        PATH=environment,
    )
    assert found.startswith("0.1.0 ") and "site-packages" in found.splitlines()[0]
    assert "gspmd/py.typed" in found and "gspmd/_core.pyi" in found
