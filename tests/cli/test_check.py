"""`gspmd check`: programs give on N devices what they give on one."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GSPMD = os.environ["GSPMD_BIN"]

# Those of tests/corpus that run in a few seconds; the others are larger than this test's patience.
CORPUS = [
    "conv_sweep_fwd_8", "dequant_int8_2x4", "dilated_conv_train_4x2",
    "fft_spectral_8", "hybrid_small_train_2x4",
    "moe_small_fwd_4x2", "moe_small_train_8x1", "moe_xy_train_2x4", "ops_mix_2x4",
    "pipe_pad_train_2x2x2", "resnet_uneven_train_1x4x2", "shardmap_mix_2x4",
    "xf_small_fwd_att1_2x4", "xf_small_train_fin_2x4",
    "xf_uneven_train_2x4",
]  # fmt: skip
# Too large to run. What is named bad_ is meant to fail.
NOT_RUN = {"iota_64bit"}


def check(path, *options, timeout=200):
    return subprocess.run(
        [GSPMD, "check", str(path), *options], capture_output=True, text=True, timeout=timeout
    )


def programs():
    cases = [p for p in sorted((ROOT / "tests/cases").glob("*.hlo")) if runs(p)]
    of_corpus = sorted((ROOT / "tests/corpus").glob("*.hlo"))
    corpus = [p for p in of_corpus if p.stem in CORPUS]
    return cases + corpus + sorted((ROOT / "tests/partition").glob("*.hlo"))


def runs(case):
    return case.stem not in NOT_RUN and not case.stem.startswith("bad_")


@pytest.mark.parametrize("path", programs(), ids=lambda p: p.stem)
def test_agrees(path):
    done = check(path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("agrees: ")


# What the comments of the cases ask for.
NO_COLLECTIVE = ["fft_batch", "interior_update", "set_slice_replicated_update", "top_k_batch"]


@pytest.mark.parametrize("name", NO_COLLECTIVE)
def test_no_collective(name, tmp_path):
    assert collectives(ROOT / f"tests/cases/{name}.hlo", tmp_path) == {}


def collectives(path, tmp_path):
    """Count of each kind in the partitioned program."""
    stats = tmp_path / "stats.json"
    subprocess.run(
        [GSPMD, "partition", str(path), "-o", os.devnull, f"--stats={stats}"], check=True
    )
    return {kind: c["count"] for kind, c in json.loads(stats.read_text())["collectives"].items()}


# A window of 16 or 13 rows over 4 devices, at a place that is known: the value is made of all rows
# (rows of the same window of a value, a number, their combinations) or exchanged with neighbours.
UPDATE = """HloModule update, num_partitions=4
add {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }}
second {{ a = f32[] parameter(0)
  ROOT b = f32[] parameter(1) }}
ENTRY main {{
  x = f32[{rows},3] parameter(0), sharding={{devices=[4,1]<=[4]}}
  w = f32[{rows},3] parameter(1), sharding={{devices=[4,1]<=[4]}}
  v = f32[{size},3] parameter(2), sharding={{devices=[4,1]<=[4]}}
  c = f32[] parameter(3)
  two = s32[] constant(2)
  zero = s32[] constant(0)
  start = s32[2] constant({{2, 0}})
  cs = f32[{size},3] broadcast(c), dimensions={{}}
  sw = f32[{size},3] slice(w), slice={{[2:{limit}], [0:3]}}
  cw = f32[{size},3] multiply(sw, cs)
  vw = f32[{size},3] add(cw, v)
  ROOT r = f32[{rows},3] {update}, sharding={{devices=[4,1]<=[4]}}
}}
"""
SCATTER = (
    "scatter(x, start, {}), update_window_dims={{0,1}}, inserted_window_dims={{}}, "
    "scatter_dims_to_operand_dims={{0,1}}, index_vector_dim=0, to_apply={}"
)


@pytest.mark.parametrize("rows", [16, 13])
@pytest.mark.parametrize("value", ["cs", "sw", "cw", "vw", "v"])
@pytest.mark.parametrize("kind", ["dynamic-update-slice(x, {}, two, zero)", "add", "second"])
def test_update_of_a_known_window(kind, value, rows, tmp_path):
    update = kind.format(value) if "(" in kind else SCATTER.format(value, kind)
    path = tmp_path / "update.hlo"
    path.write_text(UPDATE.format(rows=rows, size=rows - 4, limit=rows - 2, update=update))
    done = check(path)
    assert done.returncode == 0, done.stdout + done.stderr
    made = collectives(path, tmp_path)
    if "v" in value:  # has other rows: of neighbours only
        assert set(made) <= {"collective-permute"}, made
    else:
        assert made == {}


@pytest.mark.parametrize("seed", ["1", "2"])
def test_agrees_for_other_inputs(seed):
    done = check(ROOT / "tests/corpus/shardmap_mix_2x4.hlo", "--seed", seed)
    assert done.returncode == 0, done.stdout + done.stderr


def test_near_ties_are_named():
    done = check(ROOT / "tests/corpus/resnet_uneven_train_1x4x2.hlo", "--seed", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    if "decided otherwise" in done.stdout:  # as this processor rounds
        assert "no element was left out" in done.stdout


def test_example():
    done = check(ROOT / "examples/llama_train_8.hlo")
    assert done.returncode == 0, done.stdout + done.stderr


LOOP = """HloModule loop, num_partitions=2
body { p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  ROOT t = (s32[], f32[4]) tuple(i, x) }
cond { p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT }
ENTRY main { x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
  zero = s32[] constant(0)
  init = (s32[], f32[4]) tuple(zero, x)
  w = (s32[], f32[4]) while(init), condition=cond, body=body
  ROOT r = f32[4] get-tuple-element(w), index=1 }
"""


def test_a_loop_without_end_is_reported(tmp_path):
    path = tmp_path / "loop.hlo"
    path.write_text(LOOP)
    done = check(path, "--max-trips", "100")
    assert done.returncode == 1
    assert "100" in done.stderr


def test_what_does_not_fit_in_memory_is_refused(tmp_path):
    path = tmp_path / "large.hlo"
    path.write_text(
        "HloModule large, num_partitions=2\n"
        "ENTRY main { x = f32[1048576,1048576] parameter(0), sharding={devices=[2,1]<=[2]}\n"
        "  ROOT y = f32[1048576,1048576] negate(x) }\n"
    )
    done = check(path)
    assert done.returncode == 1
    assert "memory" in done.stderr or "GB" in done.stderr, done.stderr
