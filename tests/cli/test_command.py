"""The command's contract: formats, exit codes, diagnostics, annotations, dumps, figures."""

import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GSPMD = os.environ.get("GSPMD_BIN", str(ROOT / "build/dev/gspmd"))

PROGRAM = """HloModule m, num_partitions=8
ENTRY e {
  x = f32[16,8] parameter(0), sharding={devices=[8,1]<=[8]}
  w = f32[8,4] parameter(1)
  ROOT y = f32[16,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def gspmd(*args, stdin=None):
    return subprocess.run([GSPMD, *map(str, args)], input=stdin, capture_output=True, text=True)


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "in.hlo"
    path.write_text(PROGRAM)
    return path


def test_convert_reads_and_writes_streams():
    run = gspmd("convert", "-", stdin=PROGRAM)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("HloModule m, num_partitions=8\n\nENTRY e {\n  x = f32[16,8]{1,0}")
    assert gspmd("convert", "-", stdin=run.stdout).stdout == run.stdout


def test_diagnostic(tmp_path):
    path = tmp_path / "bad.hlo"
    path.write_text(PROGRAM.replace("dot(", "dott("))
    run = gspmd("convert", path)
    assert run.returncode == 1
    assert run.stderr == (
        f"{path}:5:22: error: 'dott' is no opcode\n"
        "    ROOT y = f32[16,4] dott(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        "                       ^\n"
        "  hint: did you mean 'dot'?\n"
    )
    assert run.stdout == ""


def test_missing_file():
    run = gspmd("convert", "/nonexistent.hlo")
    assert run.returncode == 1
    assert run.stderr == "error: /nonexistent.hlo: No such file or directory\n"


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["explode"],
        ["convert"],
        ["convert", "-", "--format", "docx"],
        ["partition", "IN", "--num-partitions", "0"],
        ["partition", "IN", "--stop-after", "lunch"],
        ["partition", "IN", "--mesh", "x"],
        ["partition", "IN", "--mesh", "x=2,x=2"],
        ["partition", "IN", "--annotate", "w"],
        ["partition", "IN", "--annotate", "nobody={replicated}"],
        ["partition", "IN", "--annotate", "w={replicate}"],
        ["partition", "IN", "--annotate", "w=[{x},{}]"],
        ["partition", "IN", "--mesh", "x=8", "--annotate", "w=[{z},{}]"],
        ["partition", "IN", "--allow-propagation-to", "everything"],
    ],
)
def test_wrong_usage(program, args):
    run = gspmd(*[program if a == "IN" else a for a in args])
    assert run.returncode == 2, run.stderr
    assert run.stderr != "" and run.stdout == ""


@pytest.mark.parametrize("command", ["", "convert", "partition", "propagate", "stats"])
def test_help(command):
    run = gspmd(*command.split(), "--help")
    assert run.returncode == 0
    assert "gspmd" in run.stdout


def test_warnings_are_quiet_on_demand(tmp_path):
    path = tmp_path / "in.hlo"
    path.write_text("HloModule m\nENTRY e {\n  x = f32[4] parameter(0), odd=1\n}\n")
    said = (
        f"{path}:3:28: warning: the attribute 'odd' of 'parameter' is unknown and kept as it is\n"
    )
    assert gspmd("convert", path).stderr == said
    assert gspmd("convert", path, "--quiet").stderr == ""


def test_time(program):
    run = gspmd("convert", program, "--time")
    assert [line.split()[0] for line in run.stderr.splitlines()] == ["parse", "print", "total"]


def test_other_formats_are_told_from_content(tmp_path):
    path = tmp_path / "program.txt"
    path.write_text("module @jit_f {\n}\n")
    run = gspmd("convert", path)
    assert run.returncode == 1 and "there is no function" in run.stderr


@pytest.mark.parametrize(
    "annotation",
    [
        "w={devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}",
        "1=[{},{y}]",
        '%w=<@mesh, [{}, {"y"}]>',
    ],
)
def test_annotate(program, annotation):
    run = gspmd("propagate", program, "--mesh", "x=2,y=4", "--annotate", annotation)
    assert run.returncode == 0, run.stderr
    w = next(line for line in run.stdout.splitlines() if line.strip().startswith("w = "))
    assert "sharding={devices=[1,4,2]<=[2,4]T(1,0) last_tile_dim_replicate}" in w or "'y'" in w


def test_custom_rule(tmp_path):
    path = tmp_path / "in.hlo"
    path.write_text("""HloModule m, num_partitions=8
ENTRY e {
  x = f32[16,8] parameter(0), sharding={devices=[8,1]<=[8]}
  ROOT y = f32[16,8] custom-call(x), custom_call_target="mine", sharding={devices=[8,1]<=[8]}
}
""")
    whole = gspmd("partition", path)
    assert "custom-call(all-gather" in whole.stdout, whole.stderr
    split = gspmd("partition", path, "--custom-rule", "mine=a _ -> a _")
    assert split.returncode == 0, split.stderr
    assert "y = f32[2,8]{1,0} custom-call(x)" in split.stdout
    wrong = gspmd("partition", path, "--custom-rule", "mine=a -> a")
    assert wrong.returncode == 1
    assert 'in.hlo:4:8: error: y = f32[16,8] custom-call(x): the rule "a -> a"' in wrong.stderr
    for bad in ("mine", "yours=a b -> a b"):
        assert gspmd("partition", path, "--custom-rule", bad).returncode == 2


def test_annotation_replaces_the_programs(tmp_path):
    path = tmp_path / "in.hlo"
    sdy = 'frontend_attributes={xla.sdy.sharding="#sdy.sharding<@m, [{}, {\\"a\\"}]>"}'
    meshes = 'frontend_attributes={xla.sdy.meshes={m = #sdy.mesh<["a"=8]>}}'
    header = f"HloModule m, num_partitions=8, {meshes}"
    path.write_text(
        f"{header}\nENTRY e {{\n  x = f32[16,8] parameter(0), {sdy}\n  ROOT y = negate(x)\n}}\n"
    )
    run = gspmd("propagate", path, "--annotate", "x={devices=[8,1]<=[8]}")
    assert run.returncode == 0, run.stderr
    x = next(line for line in run.stdout.splitlines() if line.strip().startswith("x = "))
    assert "devices=[8,1]<=[8]" in x and "xla.sdy" not in x


def test_partition_writes_dumps_and_figures(program, tmp_path):
    out, stats, dumps = tmp_path / "out.hlo", tmp_path / "stats.json", tmp_path / "dumps"
    run = gspmd("partition", program, "-o", out, "--stats", stats, "--dump-dir", dumps)
    assert run.returncode == 0, run.stderr
    assert "f32[2,8]" in out.read_text()
    figures = json.loads(stats.read_text())
    assert figures["schema"] == 1 and figures["num_partitions"] == 8
    assert set(figures["ms"]) == {"parse", "propagate", "partition", "optimize", "print", "total"}
    assert figures["instructions"]["before"] == 3
    names = sorted(p.name for p in dumps.iterdir())
    assert names[0] == "00.import.hlo" and len(names) == 7
    for path in dumps.iterdir():
        assert gspmd("convert", path, "-o", tmp_path / "again.hlo").returncode == 0


@pytest.mark.parametrize(
    "stage", ["import", "propagate", "choose-layouts", "reconcile", "optimize-reshards"]
)
def test_stop_after(program, stage):
    run = gspmd("partition", program, f"--stop-after={stage}")
    assert run.returncode == 0, run.stderr
    assert "f32[16,8]" in run.stdout  # still global shapes


MACHINE = """{"name": "m", "peak_tflops": {"f32": 0.001}, "memory_gb_per_s": 1000,
 "links": [{"gb_per_s": %s, "latency_us": 1}]}
"""


# Few rows come in and many columns go out: either the rows are gathered and everybody computes all,
# or each computes its share and the results are gathered.
UNDECIDED = """HloModule m, num_partitions=8
ENTRY e {
  x = f32[64,8] parameter(0), sharding={devices=[8,1]<=[8]}
  w = f32[8,4096] parameter(1)
  ROOT y = f32[64,4096] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize("gb_per_s,gathered", [("0.000001", "8,8"), ("1000", "8,4096")])
def test_machine_decides(tmp_path, gb_per_s, gathered):
    program, machine = tmp_path / "in.hlo", tmp_path / "machine.json"
    program.write_text(UNDECIDED)
    machine.write_text(MACHINE % gb_per_s)
    run = gspmd("partition", program, f"--machine={machine}")
    assert run.returncode == 0, run.stderr
    assert gathered_operand(run.stdout) == gathered


def test_every_machine_partitions(program):
    names = gspmd("partition", program, "--machine=?").stderr.split("hint: one of ")[1]
    for name in names.split(", or ")[0].split(", "):
        assert gspmd("partition", program, "--machine", name).returncode == 0, name


def test_machine_faults(program, tmp_path):
    run = gspmd("partition", program, "--machine=abacus")
    assert run.returncode == 2
    assert "error: --machine: there is no machine 'abacus'" in run.stderr
    assert "h100_sxm" in run.stderr
    machine = tmp_path / "machine.json"
    machine.write_text(MACHINE % "-1")
    run = gspmd("partition", program, f"--machine={machine}")
    assert run.returncode == 1
    assert f"{machine}:2:25: error: 'links/0/gb_per_s' is no number above 0" in run.stderr
    assert "tpu_v5e" in gspmd("partition", "--help").stdout


@pytest.mark.parametrize("name", ["gnn_train_8", "moe_small_fwd_4x2", "xf_small_fwd_att1_2x4"])
def test_decisions_are_replayed(tmp_path, name):
    program, decisions = ROOT / f"tests/corpus/{name}.hlo", tmp_path / "d.json"
    plain = gspmd("partition", program)
    assert gspmd("partition", program, f"--decisions={decisions}").stdout == plain.stdout
    written = decisions.read_text()
    made = json.loads(written)
    assert made["layouts"] and made["operators"]
    for operator in made["operators"]:
        units = [c["units"] for c in operator["candidates"]]
        assert len(units) > 1 and operator["chosen"] == units.index(min(units))
    assert gspmd("partition", program, f"--decisions={decisions}").stdout == plain.stdout
    assert decisions.read_text() == written
    # Completion's layouts again: the program that --keep-layouts gives.
    decisions.write_text('{"layouts": [], "operators": []}')
    kept = gspmd("partition", program, "--keep-layouts")
    assert gspmd("partition", program, f"--decisions={decisions}").stdout == kept.stdout
    assert kept.stdout != plain.stdout


def gathered_operand(text):
    (gather,) = [line for line in text.splitlines() if " all-gather(" in line]
    operand = gather.split(" all-gather(")[1].split(")")[0].lstrip("%")
    return re.search(rf"{re.escape(operand)} = f32\[([0-9,]*)\]", text).group(1)


def test_edited_decision_is_followed(tmp_path):
    program, decisions = tmp_path / "in.hlo", tmp_path / "d.json"
    program.write_text(UNDECIDED)
    run = gspmd("partition", program, f"--decisions={decisions}")
    assert gathered_operand(run.stdout) == "8,8"
    made = json.loads(decisions.read_text())
    (operator,) = made["operators"]
    assert operator["operator"] == "e/y" and len(operator["candidates"]) == 2
    operator["chosen"] = 1 - operator["chosen"]
    decisions.write_text(json.dumps(made))
    run = gspmd("partition", program, f"--decisions={decisions}")
    assert run.returncode == 0, run.stderr
    assert gathered_operand(run.stdout) == "8,4096"


LAYOUT = """{"layouts": [
 {"value": "e/%s", "layout": "%s"}], "operators": []}"""
OPERATOR = """{"layouts": [], "operators": [
 {"operator": "e/%s", "chosen": %d, "candidates": [{"operands": "%s", "results": "[{}, {}]"}]}]}"""


@pytest.mark.parametrize(
    "text,error",
    [
        (LAYOUT % ("x", "[{}, {}]"), "2:12: error: 'e/x' is no value whose layout is free"),
        (LAYOUT % ("t", "[{axis_0}]"), "2:29: error: '[{axis_0}]' is no layout of 'e/t'"),
        (LAYOUT % ("t", "[{w}, {}]"), "2:29: error: '[{w}, {}]' is no layout of 'e/t'"),
        (
            OPERATOR % ("t", 0, "[{}, {}]"),
            "2:15: error: there is no choice to make at operator 'e/t'",
        ),
        (OPERATOR % ("y", 1, "[{}, {}]"), "2:32: error: 'chosen' is none of the 1 candidates"),
        (
            OPERATOR % ("y", 0, "[{}, {axis_0}]; [{}, {}]"),
            "2:32: error: operator 'e/y' can not be partitioned so: "
            "operands [{}, {axis_0}]; [{}, {}]",
        ),
        ('{"layouts": []}', "1:1: error: 'operators' is missing"),
    ],
)
def test_decisions_that_do_not_apply(tmp_path, text, error):
    program, decisions = tmp_path / "in.hlo", tmp_path / "d.json"
    program.write_text(
        UNDECIDED.replace("w = f32", "t = f32[64,8] tanh(x)\n  w = f32").replace("dot(x", "dot(t")
    )
    decisions.write_text(text)
    run = gspmd("partition", program, f"--decisions={decisions}")
    assert run.returncode == 1
    assert f"{decisions}:{error}" in run.stderr, run.stderr
    assert decisions.read_text() == text
