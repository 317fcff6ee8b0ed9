"""The package is typed: mypy passes on it, its stub says what the extension module has."""

import pathlib
import re
import subprocess
import sys

import gspmd
from gspmd import _core

PACKAGE = pathlib.Path(gspmd.__file__).parent
USER = """
import gspmd
import jax

def f(step: object, x: jax.Array, mesh: jax.sharding.Mesh) -> dict[str, float]:
    part: gspmd.Partitioned = gspmd.partition(step, x, num_partitions=8)
    n: int = part.memory_analysis().peak_memory_in_bytes
    gspmd.mesh_split(x, mesh, [0, -1])
    with gspmd.use(on_error="xla"):
        pass
    drawing: gspmd.Drawing = gspmd.draw(x)
    kinds: dict[str, int] = part.collectives().counts()
    return part.cost_analysis()
"""


def mypy(*args, cwd):
    # What JAX leaves untyped is not this package's.
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def test_package_passes_mypy(tmp_path):
    program = tmp_path / "user.py"
    program.write_text(USER)
    done = mypy("--ignore-missing-imports", "-p", "gspmd", cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stdout
    done = mypy("--ignore-missing-imports", str(program), cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stdout


def test_wrong_use_is_seen(tmp_path):
    program = tmp_path / "user.py"
    program.write_text(USER.replace("-> dict[str, float]", "-> str"))
    done = mypy("--ignore-missing-imports", str(program), cwd=PACKAGE.parent)
    assert "Incompatible return value type" in done.stdout


def test_stub_names_all_of_the_extension():
    stub = (PACKAGE / "_core.pyi").read_text()
    public = {n for n in dir(_core) if not n.startswith("_")} - {"Error", "version"}
    public |= {n for n in dir(_core.Partitioned) if not n.startswith("_")}
    named = set(re.findall(r"(?:def|class) (\w+)", stub))
    assert public <= named and {"Error"} <= named
    assert named - {"Error", "Layout", "CustomCall"} <= public
