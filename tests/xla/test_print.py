"""XLA's own parser accepts what `gspmd convert` prints, for all programs at hand."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GSPMD = os.environ.get("GSPMD_BIN", str(ROOT / "build/dev/gspmd"))

# Reads one HLO text as XLA does; in a process of its own, since XLA aborts on some texts.
READ = """
import sys
from jaxlib import _hlo
print(len(_hlo.hlo_module_from_text(open(sys.argv[1]).read()).to_string()))
"""


def programs():
    found = sorted((ROOT / "tests/golden/ops").glob("*.hlo"))
    for variable, standard in (("GSPMD_CORPUS", "corpus"), ("GSPMD_REAL", "real")):
        folder = pathlib.Path(os.environ.get(variable, ROOT.parent / "shared" / standard))
        found += sorted(folder.glob("*.hlo"))
    return found


def read_by_xla(path):
    """The characters that XLA prints for the module; its complaint where it refuses."""
    run = subprocess.run([sys.executable, "-c", READ, str(path)], capture_output=True, text=True)
    return int(run.stdout) if run.returncode == 0 else run.stderr


@pytest.mark.parametrize("path", programs(), ids=lambda path: path.stem)
def test_xla_reads_our_print(path, tmp_path):
    out = tmp_path / "out.hlo"
    subprocess.run([GSPMD, "convert", "--quiet", str(path), "-o", str(out)], check=True)
    original, printed = read_by_xla(path), read_by_xla(out)
    assert isinstance(printed, int), printed
    assert printed == original  # XLA sees the same program in both


def test_xla_reads_every_constant(tmp_path):
    """Signs, infinities, payloads and extremes of every element type survive in XLA."""
    text = """HloModule m
ENTRY e {
  a = f32[8] constant({0.1, -0.0, inf, -inf, nan, -nan, nan(0x123), 3.4028235e+38})
  b = bf16[3] constant({3.141, -0.0, nan})
  c = f16[3] constant({0.099976, 65504, nan(0x1)})
  d = f64[3] constant({0.1, -0.0, 1e-308})
  f = f8e4m3fn[3] constant({448, -0.0, nan})
  g = f8e5m2[3] constant({57344, inf, nan(0x1)})
  h = f8e8m0fnu[2] constant({0.25, 1})
  i = s4[2] constant({-8, 7})
  j = u64[] constant(18446744073709551615)
  k = c64[2] constant({(1, -2.5), (0, inf)})
  l = pred[2] constant({1, 0})
  n = s32[2,2,1] constant({{{1},{2}},{{3},{4}}})
  o = f4e2m1fn[2] constant({6, 0.5})
  ROOT t = tuple(a, b, c, d, f, g, h, i, j, k, l, n, o)
}
"""
    source, out = tmp_path / "in.hlo", tmp_path / "out.hlo"
    source.write_text(text)
    subprocess.run([GSPMD, "convert", str(source), "-o", str(out)], check=True)
    read = "import sys\nfrom jaxlib import _hlo\n" + (
        "m = _hlo.hlo_module_from_text(open(sys.argv[1]).read())\n"
        "o = _hlo.HloPrintOptions()\no.print_large_constants = True\nprint(m.to_string(o))\n"
    )
    seen = [
        subprocess.run([sys.executable, "-c", read, str(p)], capture_output=True, text=True)
        for p in (source, out)
    ]
    assert seen[1].returncode == 0, seen[1].stderr
    assert seen[1].stdout == seen[0].stdout
