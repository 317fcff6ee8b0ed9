"""`gspmd check`: programs give on N devices what they give on one."""

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
