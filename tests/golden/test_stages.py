"""Text in, text out: golden/<stage>/<name>.hlo has a program and, behind `//> `, what comes of it.

`tools/update_golden` rewrites the outputs; the diff is the review.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
COMMANDS = {
    "propagate": ["propagate"],
    "reconcile": ["partition", "--stop-after=reconcile"],
    "partition": ["partition"],
}
MARK = "//> "


def files():
    return sorted(f for stage in COMMANDS for f in (HERE / stage).glob("*.hlo"))


def program_of(path):
    return "".join(
        line for line in path.read_text().splitlines(True) if not line.startswith(MARK.rstrip())
    )


def output_of(path, gspmd):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / path.name
        source.write_text(program_of(path))
        command = [gspmd, *COMMANDS[path.parent.name], "--quiet", str(source), "-o", "-"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip("\n")


def with_output(path, output):
    lines = [(MARK + line).rstrip() for line in output.splitlines()]
    return program_of(path).rstrip("\n") + "\n\n" + "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", files(), ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_stage(path):
    expected = with_output(path, output_of(path, os.environ["GSPMD_BIN"]))
    assert path.read_text() == expected, "tools/update_golden rewrites it"


def update(gspmd):
    for path in files():
        path.write_text(with_output(path, output_of(path, gspmd)))


if __name__ == "__main__":
    update(sys.argv[1])
