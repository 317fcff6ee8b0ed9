"""Our kernels compute what XLA's CPU backend computes, on random and on special values.

XLA runs all programs in one child; ours run one by one, through `gspmd run`.
"""

import itertools
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
GSPMD = os.environ.get("GSPMD_BIN", str(ROOT / "build/dev/gspmd"))

ADD = "add { a = T[] parameter(0)\n b = T[] parameter(1)\n ROOT r = T[] add(a, b)\n}\n"
MAX = "mx { a = T[] parameter(0)\n b = T[] parameter(1)\n ROOT r = T[] maximum(a, b)\n}\n"
GE = (
    "ge { a = T[] parameter(0)\n b = T[] parameter(1)\n"
    " ROOT r = pred[] compare(a, b), direction=GE\n}\n"
)
LESS = (
    "less { a = T[] parameter(0)\n b = T[] parameter(1)\n i = s32[] parameter(2)\n"
    " j = s32[] parameter(3)\n ROOT r = pred[] compare(a, b), direction=LT, type=ORDER\n}\n"
)

DTYPES = {
    "pred": np.bool_,
    "s8": np.int8,
    "u8": np.uint8,
    "s16": np.int16,
    "s32": np.int32,
    "u32": np.uint32,
    "s64": np.int64,
    "u64": np.uint64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 3e9, 1e-6]


def array(dtype, dims, rng, special=True):
    dt = np.dtype(DTYPES[dtype])
    size = int(np.prod(dims))
    if dt.kind == "b":
        x = rng.integers(0, 2, size)
    elif dt.kind in "iu":
        x = rng.integers(-20, 20, size).astype(dt)
        info = np.iinfo(dt)
        extremes = np.array([info.min, info.max, 0, 1, info.max - 1], dtype=dt)
        if special:
            x[: min(size, 25)] = np.resize(np.repeat(extremes, 5), min(size, 25))
    elif dt.kind == "c":
        x = rng.normal(size=size) + 1j * rng.normal(size=size)
    else:
        x = rng.normal(size=size) * 3
        if special:  # each special value beside each other one: see `pairs`
            x[: min(size, 196)] = np.resize(np.repeat(SPECIAL, 14), min(size, 196))
    with np.errstate(all="ignore"):
        return x.astype(dt).reshape(dims)


def rolled(x, step):
    """Puts the special values of a second operand beside all of the first one's."""
    return np.concatenate([np.resize(x.ravel()[:196:step], 196), x.ravel()[196:]]).reshape(x.shape)


class Program:
    def __init__(self, name, params, body, computations="", tolerance=0.0, special=True, spread=0):
        self.name, self.params, self.body = name, params, body
        self.computations, self.tolerance, self.special = computations, tolerance, special
        self.spread = spread  # integer parameters of indices: values in [-spread/4, spread)

    def text(self):
        params = "".join(
            f"  p{k} = {shape} parameter({k})\n" for k, shape in enumerate(self.params)
        )
        return f"HloModule m\n\n{self.computations}\nENTRY e {{\n{params}  {self.body}\n}}\n"

    def inputs(self):
        rng = np.random.default_rng(len(self.name))
        out = []
        for k, shape in enumerate(self.params):
            dtype, dims = shape.rstrip("]").split("[")
            dims = [int(d) for d in dims.split(",") if d]
            x = array(dtype, dims, rng, self.special)
            if self.spread and dtype == "s32":
                x = rng.integers(-self.spread // 4, self.spread, dims).astype(np.int32)
            elif self.special and k == 1 and x.size >= 196 and x.dtype.kind == "f":
                x = rolled(x, 14)
            elif self.special and k == 1 and x.size >= 25 and x.dtype.kind in "iu":
                flat = x.ravel().copy()
                flat[:25] = np.resize(flat[:25:5], 25)
                x = flat.reshape(dims)
            out.append(x)
        return out


def elementwise():
    exact = ["abs", "negate", "sign", "ceil", "floor", "round-nearest-even", "round-nearest-afz"]
    close = [
        "exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "sqrt", "rsqrt",
        "cbrt", "tanh", "tan", "sine", "cosine", "erf",
    ]  # fmt: skip
    for t in ["f32", "f64"]:
        for op in exact:
            yield Program(f"{op} {t}", [f"{t}[400]"], f"ROOT r = {t}[400] {op}(p0)")
        for op in close:
            tolerance = 3e-6 if t == "f32" else 1e-12
            body = f"ROOT r = {t}[400] {op}(p0)"
            if op in ["sine", "cosine", "tan"]:  # of 3e9: depends on the reduction's precision
                body = f"l = {t}[] constant(-100)\n  h = {t}[] constant(100)\n"
                body += f"  c = {t}[400] clamp(l, p0, h)\n  "
                body += f"ROOT r = {t}[400] {op}(c)"
            yield Program(f"{op} {t}", [f"{t}[400]"], body, tolerance=tolerance)
        for op in ["add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum"]:
            yield Program(f"{op} {t}", [f"{t}[400]"] * 2, f"ROOT r = {t}[400] {op}(p0, p1)")
        for op in ["power", "atan2"]:
            tolerance = 3e-6 if t == "f32" else 1e-12
            body = f"ROOT r = {t}[400] {op}(p0, p1)"
            yield Program(f"{op} {t}", [f"{t}[400]"] * 2, body, tolerance=tolerance)
    for t in ["s8", "u8", "s16", "s32", "u32", "s64", "u64"]:
        for op in ["abs", "negate", "sign", "not", "popcnt", "count-leading-zeros"]:
            if op not in ("abs", "sign") or t[0] == "s":
                yield Program(f"{op} {t}", [f"{t}[60]"], f"ROOT r = {t}[60] {op}(p0)")
        for op in [
            "add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "and", "or",
            "xor", "shift-left", "shift-right-logical", "shift-right-arithmetic",
        ]:  # fmt: skip
            yield Program(f"{op} {t}", [f"{t}[60]"] * 2, f"ROOT r = {t}[60] {op}(p0, p1)")
        # XLA looks at the low bits of an exponent only.
        body = f"l = {t}[] constant({-5 if t[0] == 's' else 0})\n  h = {t}[] constant(40)\n"
        body += f"  e = {t}[60] clamp(l, p1, h)\n  ROOT r = {t}[60] power(p0, e)"
        yield Program(f"power {t}", [f"{t}[60]"] * 2, body)
    for t in ["f32", "s32", "u8"]:
        for d in ["EQ", "NE", "LT", "LE", "GT", "GE"]:
            body = f"ROOT r = pred[400] compare(p0, p1), direction={d}"
            yield Program(f"compare {d} {t}", [f"{t}[400]"] * 2, body)
    for op in ["exponential", "log", "sqrt", "rsqrt", "tanh", "sine", "cosine", "sign", "logistic",
               "exponential-minus-one", "log-plus-one", "tan"]:  # fmt: skip
        yield Program(f"{op} c64", ["c64[50]"], f"ROOT r = c64[50] {op}(p0)", tolerance=2e-5)
    for op in ["multiply", "divide", "power", "add"]:
        body = f"ROOT r = c64[50] {op}(p0, p1)"
        yield Program(f"{op} c64", ["c64[50]"] * 2, body, tolerance=2e-5)


def conversions():
    numbers = ["pred", "s8", "u8", "s32", "u32", "s64", "u64", "f16", "f32", "f64"]
    for a, b in itertools.permutations(numbers, 2):
        yield Program(f"convert {a} {b}", [f"{a}[400]"], f"ROOT r = {b}[400] convert(p0)")
    narrow = ["bf16", "f8e4m3fn", "f8e5m2", "f8e4m3b11fnuz", "f8e4m3fnuz", "f8e5m2fnuz", "f8e4m3",
              "f8e3m4", "f4e2m1fn", "f8e8m0fnu", "s4", "u4"]  # fmt: skip
    for t in narrow:
        body = f"c = {t}[400] convert(p0)\n  ROOT r = f32[400] convert(c)"
        yield Program(f"convert f32 {t}", ["f32[400]"], body)
    for e, m in [(5, 10), (8, 7), (5, 2), (4, 3), (8, 23), (3, 0)]:
        body = f"ROOT r = f32[400] reduce-precision(p0), exponent_bits={e}, mantissa_bits={m}"
        yield Program(f"reduce-precision e{e}m{m}", ["f32[400]"], body)


def contractions():
    yield Program(
        "dot",
        ["f32[3,7,5]", "f32[5,3,9]"],
        "ROOT r = f32[3,7,9] dot(p0, p1), lhs_batch_dims={0}, lhs_contracting_dims={2}, "
        "rhs_batch_dims={1}, rhs_contracting_dims={0}",
        tolerance=1e-5,
        special=False,
    )
    windows = [
        ("window={size=3x3 pad=1_1x1_1}", "b01f_01io->b01f", 1, 1, "f32[2,8,9,4]"),
        ("window={size=3x3 stride=2x1 rhs_dilate=1x2}", "b01f_01io->b01f", 1, 1, "f32[2,3,5,4]"),
        ("window={size=3x3 lhs_dilate=2x3}", "b01f_01io->b01f", 1, 1, "f32[2,13,23,4]"),
        ("window={size=3x3 rhs_reversal=1x0}", "b01f_01io->b01f", 1, 1, "f32[2,6,7,4]"),
        ("window={size=3x3 pad=-1_1x2_-2}", "b01f_01io->b01f", 1, 1, "f32[2,6,7,4]"),
    ]
    for window, labels, groups, batches, result in windows:
        yield Program(
            f"convolution {window}",
            ["f32[2,8,9,6]", "f32[3,3,6,4]"],
            f"ROOT r = {result} convolution(p0, p1), {window}, dim_labels={labels}, "
            f"feature_group_count={groups}, batch_group_count={batches}",
            tolerance=1e-5,
            special=False,
        )
    yield Program(
        "convolution groups",
        ["f32[2,8,9,6]", "f32[3,3,2,12]"],
        "ROOT r = f32[2,6,7,12] convolution(p0, p1), window={size=3x3}, "
        "dim_labels=b01f_01io->b01f, feature_group_count=3",
        tolerance=1e-5,
        special=False,
    )
    yield Program(
        "convolution batch groups",
        ["f32[4,8,9,6]", "f32[3,3,6,4]"],
        "ROOT r = f32[2,6,7,4] convolution(p0, p1), window={size=3x3}, "
        "dim_labels=b01f_01io->b01f, batch_group_count=2",
        tolerance=1e-5,
        special=False,
    )
    for kind, x, r in [("FFT", "c64", "c64[5,30]"), ("IFFT", "c64", "c64[5,30]"),
                       ("RFFT", "f32", "c64[5,16]"), ("IRFFT", "c64", "f32[5,30]")]:  # fmt: skip
        dims = "5,16" if kind == "IRFFT" else "5,30"
        yield Program(
            f"fft {kind}",
            [f"{x}[{dims}]"],
            f"ROOT r = {r} fft(p0), fft_type={kind}, fft_length={{5,30}}",
            tolerance=2e-5,
            special=False,
        )


def reductions():
    add, mx, ge = (c.replace("T[]", "f32[]") for c in (ADD, MAX, GE))
    for dims, result in [("0", "5,7"), ("1", "4,7"), ("2", "4,5"), ("0,2", "5"), ("0,1,2", "")]:
        body = f"z = f32[] constant(1)\n  ROOT r = f32[{result}] reduce(p0, z), "
        body += f"dimensions={{{dims}}}, "
        yield Program(f"sum {dims}", ["f32[4,5,7]"], body + "to_apply=add", add, 1e-5, False)
        yield Program(f"max {dims}", ["f32[4,5,7]"], body + "to_apply=mx", mx, 0, False)
    for window, result in [
        ("size=2x3 stride=1x2 pad=1_0x2_1", "8,5"),
        ("size=2x2 lhs_dilate=2x1", "14,8"),
        ("size=3x2 rhs_dilate=2x3", "4,6"),
    ]:
        body = f"z = f32[] constant(0)\n  ROOT r = f32[{result}] reduce-window(p0, z), "
        body += f"window={{{window}}}, to_apply=add"
        yield Program(f"reduce-window {window}", ["f32[8,9]"], body, add, 1e-5, False)
    yield Program(
        "select-and-scatter",
        ["f32[8,9]", "f32[4,5]"],
        "z = f32[] constant(0)\n  ROOT r = f32[8,9] select-and-scatter(p0, p1, z), "
        "window={size=3x3 stride=2x2 pad=0_1x1_1}, select=ge, scatter=add",
        ge + add,
        1e-5,
        False,
    )
    for dim in [0, 1]:
        less = LESS.replace("T[]", "f32[]").replace("ORDER", "TOTALORDER")
        body = f"i = s32[20,30] iota(), iota_dimension={dim}\n"
        body += "  ROOT r = (f32[20,30], s32[20,30]) sort(p0, i), "
        body += f"dimensions={{{dim}}}, is_stable=true, to_apply=less"
        yield Program(f"sort {dim}", ["f32[20,30]"], body, less)
    body = "ROOT r = (f32[20,6], s32[20,6]) topk(p0), k=6, largest=true"
    yield Program("topk", ["f32[20,30]"], body)


def indexing():
    add = ADD.replace("T[]", "f32[]")
    yield Program(
        "gather",
        ["f32[8,9,4]", "s32[5,2]"],
        "ROOT r = f32[5,2,4] gather(p0, p1), offset_dims={1,2}, collapsed_slice_dims={0}, "
        "start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,2,4}",
        spread=12,
        special=False,
    )
    yield Program(
        "scatter",
        ["f32[8,9,4]", "s32[5,2]", "f32[5,2,4]"],
        "ROOT r = f32[8,9,4] scatter(p0, p1, p2), update_window_dims={1,2}, "
        "inserted_window_dims={0}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, "
        "to_apply=add",
        add,
        1e-5,
        special=False,
        spread=12,
    )
    yield Program(
        "dynamic-slice",
        ["f32[8,9]", "s32[2]"],
        "a = s32[1] slice(p1), slice={[0:1]}\n  b = s32[1] slice(p1), slice={[1:2]}\n"
        "  i = s32[] reshape(a)\n  j = s32[] reshape(b)\n"
        "  s = f32[3,4] dynamic-slice(p0, i, j), dynamic_slice_sizes={3,4}\n"
        "  ROOT r = f32[8,9] dynamic-update-slice(p0, s, j, i)",
        spread=16,
        special=False,
    )
    yield Program(
        "pad",
        ["f32[4,5]"],
        "v = f32[] constant(7)\n  ROOT r = f32[11,7] pad(p0, v), padding=-1_2_2x1_1",
        special=False,
    )


PROGRAMS = [
    *elementwise(), *conversions(), *contractions(), *reductions(), *indexing(),
]  # fmt: skip


def run_on_xla(folder):
    """In a process of its own: results of every program, o<program>_<result>.npy."""
    sys.argv = [sys.argv[0], "-", "1"]
    sys.path.insert(0, str(ROOT / "tools"))
    import run_partitioned

    for number, program in enumerate(PROGRAMS):
        try:
            text, _, _ = run_partitioned.prepare(program.text(), 1)
            results = run_partitioned.execute(text, [[x] for x in program.inputs()], 1)
        except Exception as error:  # the test of this program tells
            (folder / f"e{number}").write_text(str(error))
            continue
        for k, result in enumerate(results):
            np.save(folder / f"o{number}_{k}.npy", result[0])


@pytest.fixture(scope="module")
def xla(tmp_path_factory):
    folder = tmp_path_factory.mktemp("xla")
    done = subprocess.run(
        [sys.executable, __file__, str(folder)], capture_output=True, text=True, timeout=800
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def run_here(program, folder):
    source = folder / "program.hlo"
    source.write_text(program.text())
    files = []
    for k, x in enumerate(program.inputs()):
        files.append(str(folder / f"p{k}.npy"))
        np.save(files[-1], x)
    command = [GSPMD, "run", str(source), "--num-partitions", "1", "--quiet", "--inputs", *files]
    done = subprocess.run([*command, "--outputs", str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def check(ours, theirs, program):
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    if ours.dtype.kind not in "fc":
        wrong = ours != theirs
    elif program.tolerance == 0:
        wrong = ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    else:
        close = np.abs(ours - theirs) <= program.tolerance * (1 + np.abs(theirs))
        wrong = ~(close | (ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
    at = np.flatnonzero(wrong.ravel())
    values = [x.ravel()[at[0]] for x in program.inputs() if len(at) and x.size == wrong.size]
    assert len(at) == 0, (
        f"{len(at)} differ, first [{at[0]}] of {values}: ours {ours.ravel()[at[0]]}, "
        f"XLA's {theirs.ravel()[at[0]]}"
    )


@pytest.mark.parametrize("number", range(len(PROGRAMS)), ids=lambda n: PROGRAMS[n].name)
def test_kernel(number, xla, tmp_path):
    program = PROGRAMS[number]
    refused = xla / f"e{number}"
    assert not refused.exists(), "XLA: " + refused.read_text()[:200]
    run_here(program, tmp_path)
    theirs = sorted(xla.glob(f"o{number}_*.npy"))
    assert theirs
    with np.errstate(all="ignore"):
        for k, path in enumerate(theirs):
            check(np.load(tmp_path / f"o{k}_d0.npy"), np.load(path), program)


if __name__ == "__main__":
    run_on_xla(pathlib.Path(sys.argv[1]))
