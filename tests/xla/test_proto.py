"""HloModuleProto: the same meaning as text, both ways, in our eyes and in XLA's."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GSPMD = os.environ.get("GSPMD_BIN", str(ROOT / "build/dev/gspmd"))

# For each line "TEXT OURS THEIRS": XLA reads our message OURS, prints it over itself as text, and
# writes its own message of TEXT to THEIRS. In a process of its own, since XLA may abort.
XLA = """
import sys, pathlib
from jaxlib import _hlo
for line in sys.stdin:
    text, ours, theirs = map(pathlib.Path, line.split())
    module = _hlo.hlo_module_from_text(text.read_text())
    theirs.write_bytes(module.as_serialized_hlo_module_proto())
    read = _hlo.HloModule.from_serialized_hlo_module_proto(ours.read_bytes())
    ours.with_suffix(".xla").write_text(read.to_string())
    print(text, flush=True)
"""


def programs():
    found = sorted((ROOT / "tests/golden/ops").glob("*.hlo"))
    for variable, standard in (("GSPMD_CORPUS", "corpus"), ("GSPMD_REAL", "real")):
        folder = pathlib.Path(os.environ.get(variable, ROOT.parent / "shared" / standard))
        found += sorted(folder.glob("*.hlo"))
    return found


def for_xla(path):
    """Whether all constants have their values (dumps may leave them out), and not too large."""
    return path.stat().st_size < 1_000_000 and "({...})" not in path.read_text()


def convert(source, target):
    done = subprocess.run(
        [GSPMD, "convert", "--quiet", str(source), "-o", str(target)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def by_xla(tmp_path_factory):
    """For each program our normal text of it, our message, and XLA's."""
    folder = tmp_path_factory.mktemp("proto")
    files = {}
    for path in programs():
        name = f"{path.parent.name}_{path.stem}"
        text = convert(path, folder / f"{name}.hlo")
        ours = convert(path, folder / f"{name}.pb")
        files[path] = text, ours, folder / f"{name}.theirs.pb"
    lines = "\n".join(" ".join(map(str, f)) for p, f in files.items() if for_xla(p))
    done = subprocess.run([sys.executable, "-c", XLA], input=lines, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:] + "\nafter " + done.stdout[-200:]
    return files


@pytest.mark.parametrize("path", programs(), ids=lambda p: f"{p.parent.name}_{p.stem}")
def test_message_and_text_are_one(path, by_xla, tmp_path):
    text, ours, _ = by_xla[path]
    assert convert(ours, tmp_path / "back.hlo").read_text() == text.read_text()


def lines(path):
    """All but the header, since XLA has no number of partitions in its message; in any order, since
    XLA puts computations in another one when it reads a text."""
    return sorted(path.read_text().split("\n")[1:])


@pytest.mark.parametrize(
    "path", list(filter(for_xla, programs())), ids=lambda p: f"{p.parent.name}_{p.stem}"
)
def test_xla_means_the_same(path, by_xla, tmp_path):
    _, ours, theirs = by_xla[path]
    by_message = convert(ours.with_suffix(".xla"), tmp_path / "a.hlo")
    by_text = convert(theirs, tmp_path / "b.hlo")
    assert lines(by_message) == lines(by_text)


def test_partitions_a_message(tmp_path):
    program = (
        "HloModule m, num_partitions=8\nENTRY e {\n"
        "  x = f32[16,4096] parameter(0), sharding={devices=[1,8]<=[8]}\n"
        "  ROOT y = f32[16,16] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n}\n"
    )
    source = tmp_path / "in.hlo"
    source.write_text(program)
    message = convert(source, tmp_path / "in.pb")
    outs = []
    for path in (source, message):
        command = [GSPMD, "partition", str(path), "-o", "-", "--quiet"]
        outs.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert outs[0] == outs[1]
    assert "all-reduce" in outs[0]


def test_a_message_that_is_none(tmp_path):
    path = tmp_path / "bad.pb"
    path.write_bytes(b"\x0a\x05hello\x00\x01")
    done = subprocess.run([GSPMD, "convert", str(path), "-o", "-"], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{path}: error: the bytes are no HLO module")
