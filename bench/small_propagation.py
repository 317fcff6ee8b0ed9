#!/usr/bin/env python3
"""Compare our completion with XLA's on many generated little programs, one per line of a table.

    small_propagation.py [GSPMD] [--seed S] [--each N] [--only PATTERN] [--most N] [--keep FILE]

For each operator of TEMPLATES it writes N little programs: operands behind copies, the operator, a
copy of its result, and random shardings over 8 devices on some of the copies. All of them stand
side by side in one module, which XLA's sharding propagation (bench/xla_propagation.py) and
`gspmd propagate` complete. A little program differs where any of its values is not split alike.
"""

import argparse
import os
import random
import re
import sys
import tempfile
from collections import Counter, defaultdict

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "bench"))
import compare_propagation
import xla_propagation

ADD = "{p}_add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }"
MAX = "{p}_max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }"
LESS = (
    "{p}_less { a = f32[] parameter(0) b = f32[] parameter(1)"
    " ROOT r = pred[] compare(a, b), direction=LT }"
)
LESS2 = (
    "{p}_less { a = f32[] parameter(0) b = f32[] parameter(1)"
    " c = s32[] parameter(2) d = s32[] parameter(3)"
    " ROOT r = pred[] compare(a, b), direction=LT }"
)
LOOP = """{p}_body { t = (s32[], f32[16,8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[16,8] get-tuple-element(t), index=1
  y = f32[16,8] tanh(x)
  one = s32[] constant(1)
  j = s32[] add(i, one)
  ROOT r = (s32[], f32[16,8]) tuple(j, y) }
{p}_cond { t = (s32[], f32[16,8]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(5)
  ROOT r = pred[] compare(i, n), direction=LT }"""
BRANCHES = """{p}_t { x = f32[16,8] parameter(0) ROOT r = f32[16,8] tanh(x) }
{p}_f { x = f32[16,8] parameter(0) ROOT r = f32[16,8] negate(x) }"""

# name: (operand shapes, lines; @0 @1 are operands, the last line is the result; functions)
TEMPLATES = {
    "add": (["f32[16,8]", "f32[16,8]"], ["f32[16,8] add(@0, @1)"], []),
    "select": (["pred[16,8]", "f32[16,8]", "f32[16,8]"], ["f32[16,8] select(@0, @1, @2)"], []),
    "clamp": (["f32[]", "f32[16,8]", "f32[]"], ["f32[16,8] clamp(@0, @1, @2)"], []),
    "convert": (["f32[16,8]"], ["bf16[16,8] convert(@0)"], []),
    "broadcast": (["f32[8]"], ["f32[16,8] broadcast(@0), dimensions={1}"], []),
    "broadcast_mid": (["f32[8,16]"], ["f32[8,4,16] broadcast(@0), dimensions={0,2}"], []),
    "broadcast_add": (
        ["f32[8]", "f32[16,8]"],
        ["f32[16,8] broadcast(@0), dimensions={1}", "f32[16,8] add($0, @1)"],
        [],
    ),
    "transpose": (["f32[16,8,4]"], ["f32[4,16,8] transpose(@0), dimensions={2,0,1}"], []),
    "reshape_merge": (["f32[16,8,4]"], ["f32[16,32] reshape(@0)"], []),
    "reshape_split": (["f32[16,32]"], ["f32[16,8,4] reshape(@0)"], []),
    "reshape_split_small": (["f32[32,4]"], ["f32[2,16,4] reshape(@0)"], []),
    "reshape_merge_front": (["f32[2,16,4]"], ["f32[32,4] reshape(@0)"], []),
    "reshape_ones": (["f32[16,1,8]"], ["f32[1,16,8] reshape(@0)"], []),
    "reshape_odd": (["f32[6,4]"], ["f32[4,6] reshape(@0)"], []),
    "reduce": (
        ["f32[16,8,4]", "f32[]"],
        ["f32[16,4] reduce(@0, @1), dimensions={1}, to_apply={p}_add"],
        [ADD],
    ),
    "reduce_all": (
        ["f32[16,8]", "f32[]"],
        ["f32[] reduce(@0, @1), dimensions={0,1}, to_apply={p}_add"],
        [ADD],
    ),
    "dot": (
        ["f32[16,8]", "f32[8,4]"],
        ["f32[16,4] dot(@0, @1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"],
        [],
    ),
    "dot_batch": (
        ["f32[8,16,4]", "f32[8,4,16]"],
        [
            "f32[8,16,16] dot(@0, @1), lhs_batch_dims={0}, rhs_batch_dims={0},"
            " lhs_contracting_dims={2}, rhs_contracting_dims={1}"
        ],
        [],
    ),
    "dot_dot": (
        ["f32[16,8]", "f32[8,32]", "f32[32,8]"],
        [
            "f32[16,32] dot(@0, @1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "f32[16,8] dot($0, @2), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        ],
        [],
    ),
    "concat": (
        ["f32[16,8]", "f32[16,8]"],
        ["f32[16,16] concatenate(@0, @1), dimensions={1}"],
        [],
    ),
    "slice": (["f32[16,8]"], ["f32[16,4] slice(@0), slice={[0:16], [2:6]}"], []),
    "slice_strided": (["f32[16,8]"], ["f32[8,8] slice(@0), slice={[0:16:2], [0:8]}"], []),
    "pad": (["f32[16,8]", "f32[]"], ["f32[16,16] pad(@0, @1), padding=0_0x4_4"], []),
    "reverse": (["f32[16,8]"], ["f32[16,8] reverse(@0), dimensions={0}"], []),
    "iota": (
        ["f32[16,8]"],
        ["f32[16,8] iota(), iota_dimension=0", "f32[16,8] add($0, @0)"],
        [],
    ),
    "dynamic_slice": (
        ["f32[16,8]", "s32[]", "s32[]"],
        ["f32[16,1] dynamic-slice(@0, @1, @2), dynamic_slice_sizes={16,1}"],
        [],
    ),
    "dynamic_slice_part": (
        ["f32[16,8]", "s32[]", "s32[]"],
        ["f32[8,8] dynamic-slice(@0, @1, @2), dynamic_slice_sizes={8,8}"],
        [],
    ),
    "dynamic_update_slice": (
        ["f32[16,8]", "f32[16,1]", "s32[]", "s32[]"],
        ["f32[16,8] dynamic-update-slice(@0, @1, @2, @3)"],
        [],
    ),
    "conv": (
        ["f32[8,16,16,4]", "f32[3,3,4,8]"],
        [
            "f32[8,16,16,8] convolution(@0, @1), window={size=3x3 pad=1_1x1_1},"
            " dim_labels=b01f_01io->b01f"
        ],
        [],
    ),
    "conv_grad": (
        ["f32[8,16,16,4]", "f32[8,16,16,8]"],
        [
            "f32[3,3,4,8] convolution(@0, @1), window={size=16x16 pad=1_1x1_1},"
            " dim_labels=f01b_i01o->01bf"
        ],
        [],
    ),
    "conv_grouped": (
        ["f32[8,16,16,8]", "f32[3,3,1,8]"],
        [
            "f32[8,16,16,8] convolution(@0, @1), window={size=3x3 pad=1_1x1_1},"
            " dim_labels=b01f_01io->b01f, feature_group_count=8"
        ],
        [],
    ),
    "reduce_window": (
        ["f32[8,16,16,4]", "f32[]"],
        [
            "f32[8,8,8,4] reduce-window(@0, @1), window={size=1x2x2x1 stride=1x2x2x1},"
            " to_apply={p}_max"
        ],
        [MAX],
    ),
    "select_and_scatter": (
        ["f32[8,16,16,4]", "f32[8,8,8,4]", "f32[]"],
        [
            "f32[8,16,16,4] select-and-scatter(@0, @1, @2), window={size=1x2x2x1 stride=1x2x2x1},"
            " select={p}_less, scatter={p}_add"
        ],
        [LESS, ADD],
    ),
    "sort": (["f32[16,8]"], ["f32[16,8] sort(@0), dimensions={1}, to_apply={p}_less"], [LESS]),
    "sort2": (
        ["f32[16,8]", "s32[16,8]"],
        [
            "(f32[16,8], s32[16,8]) sort(@0, @1), dimensions={0}, to_apply={p}_less",
            "f32[16,8] get-tuple-element($0), index=0",
        ],
        [LESS2],
    ),
    "gather": (
        ["f32[32,8]", "s32[16,1]"],
        [
            "f32[16,8] gather(@0, @1), offset_dims={1}, collapsed_slice_dims={0},"
            " start_index_map={0}, index_vector_dim=1, slice_sizes={1,8}"
        ],
        [],
    ),
    "gather_batch": (
        ["f32[8,32,4]", "s32[8,16,1]"],
        [
            "f32[8,16,4] gather(@0, @1), offset_dims={2}, collapsed_slice_dims={1},"
            " operand_batching_dims={0}, start_indices_batching_dims={0},"
            " start_index_map={1}, index_vector_dim=2, slice_sizes={1,1,4}"
        ],
        [],
    ),
    "scatter": (
        ["f32[32,8]", "s32[16,1]", "f32[16,8]"],
        [
            "f32[32,8] scatter(@0, @1, @2), update_window_dims={1}, inserted_window_dims={0},"
            " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply={p}_add"
        ],
        [ADD],
    ),
    "cumsum": (
        ["f32[16,8]", "f32[]"],
        ["f32[16,8] reduce-window(@0, @1), window={size=1x8 pad=0_0x7_0}, to_apply={p}_add"],
        [ADD],
    ),
    "cholesky": (["f32[8,4,4]"], ["f32[8,4,4] cholesky(@0), lower=true"], []),
    "triangular_solve": (
        ["f32[8,4,4]", "f32[8,4,16]"],
        [
            "f32[8,4,16] triangular-solve(@0, @1), left_side=true, lower=true,"
            " transpose_a=NO_TRANSPOSE"
        ],
        [],
    ),
    "fft": (["c64[8,16]"], ["c64[8,16] fft(@0), fft_type=FFT, fft_length={16}"], []),
    "tuple": (
        ["f32[16,8]", "f32[8]"],
        ["(f32[16,8], f32[8]) tuple(@0, @1)", "f32[16,8] get-tuple-element($0), index=0"],
        [],
    ),
    "while": (
        ["s32[]", "f32[16,8]"],
        [
            "(s32[], f32[16,8]) tuple(@0, @1)",
            "(s32[], f32[16,8]) while($0), condition={p}_cond, body={p}_body",
            "f32[16,8] get-tuple-element($1), index=1",
        ],
        [LOOP],
    ),
    "conditional": (
        ["pred[]", "f32[16,8]", "f32[16,8]"],
        [
            "f32[16,8] conditional(@0, @1, @2), true_computation={p}_t, false_computation={p}_f",
        ],
        [BRANCHES],
    ),
    "optimization_barrier": (
        ["f32[16,8]", "f32[8,8]"],
        [
            "(f32[16,8], f32[8,8]) tuple(@0, @1)",
            "(f32[16,8], f32[8,8]) opt-barrier($0)",
            "f32[16,8] get-tuple-element($1), index=0",
        ],
        [],
    ),
    "softmax": (
        ["f32[16,8]", "f32[]"],
        [
            "f32[16] reduce(@0, @1), dimensions={1}, to_apply={p}_max",
            "f32[16,8] broadcast($0), dimensions={0}",
            "f32[16,8] subtract(@0, $1)",
            "f32[16,8] exponential($2)",
        ],
        [MAX],
    ),
    "mlp": (
        ["f32[16,8]", "f32[8,32]", "f32[32,8]", "f32[32]"],
        [
            "f32[16,32] dot(@0, @1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "f32[16,32] broadcast(@3), dimensions={1}",
            "f32[16,32] add($0, $1)",
            "f32[16,8] dot($2, @2), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
            "f32[16,8] add($3, @0)",
        ],
        [],
    ),
    "rng": (
        ["f32[]", "f32[]", "f32[16,8]"],
        ["f32[16,8] rng(@0, @1), distribution=rng_uniform", "f32[16,8] add($0, @2)"],
        [],
    ),
    "bitcast_convert": (["f32[16,8]"], ["u32[16,8] bitcast-convert(@0)"], []),
    "map_pow": (["f32[16,8]", "f32[16,8]"], ["f32[16,8] power(@0, @1)"], []),
    "scalar": (
        ["f32[]", "f32[16,8]"],
        ["f32[16,8] broadcast(@0), dimensions={}", "f32[16,8] multiply($0, @1)"],
        [],
    ),
}

LEAF = re.compile(r"^\w+\[([\d,]*)\]$")


def random_sharding(shape, rng):
    dims = [int(x) for x in LEAF.match(shape)[1].split(",") if x]
    if not dims:
        return None
    axes = [0, 1, 2]
    rng.shuffle(axes)
    used = axes[: rng.choice([1, 1, 2, 2, 3])]
    of_dim = defaultdict(list)
    for axis in used:
        choices = [d for d in range(len(dims)) if dims[d] % 2 ** (len(of_dim[d]) + 1) == 0]
        if choices:
            of_dim[rng.choice(choices)].append(axis)
    order = [a for d in range(len(dims)) for a in of_dim[d]]
    if not order:
        return None
    rest = [a for a in range(3) if a not in order]
    tiles = [2 ** len(of_dim[d]) for d in range(len(dims))]
    copies = 2 ** len(rest)
    shape_text = ",".join(str(t) for t in tiles + ([copies] if rest else []))
    perm = ",".join(map(str, order + rest))
    iota = "<=[8]" if order + rest == [0, 1, 2] else f"<=[2,2,2]T({perm})"
    last = " last_tile_dim_replicate" if rest else ""
    return f"{{devices=[{shape_text}]{iota}{last}}}"


class Writer:
    def __init__(self):
        self.functions, self.body, self.parameters, self.results = [], [], 0, []

    def add(self, name, template, rng):
        operands, lines, functions = template
        self.functions += [f.replace("{p}", name) for f in functions]
        arrays = [k for k, s in enumerate(operands) if "[]" not in s]
        places = [*arrays, -1]  # -1: the result
        chosen = rng.sample(places, min(len(places), rng.choice([1, 1, 1, 2, 2, 3])))
        for k, shape in enumerate(operands):
            self.body.append(f"  {name}_p{k} = {shape} parameter({self.parameters})")
            self.parameters += 1
            self.copy(f"{name}_a{k}", shape, f"{name}_p{k}", k in chosen, rng)
        for k, line in enumerate(lines):
            line = re.sub(r"@(\d)", rf"{name}_a\1", line)
            line = re.sub(r"\$(\d)", rf"{name}_x\1", line).replace("{p}", name)
            self.body.append(f"  {name}_x{k} = {line}")
        shape = lines[-1].split(" ")[0]
        self.copy(f"{name}_r", shape, f"{name}_x{len(lines) - 1}", -1 in chosen, rng)
        self.results.append((shape, f"{name}_r"))

    def copy(self, name, shape, of, annotated, rng):
        sharding = random_sharding(shape, rng) if annotated else None
        note = f", sharding={sharding}" if sharding else ""
        self.body.append(f"  {name} = {shape} copy({of}){note}")

    def text(self):
        shapes = ", ".join(s for s, _ in self.results)
        names = ", ".join(n for _, n in self.results)
        lines = ["HloModule small, num_partitions=8", ""]
        lines += [*self.functions, "ENTRY main {", *self.body]
        lines += [f"  ROOT all = ({shapes}) tuple({names})", "}", ""]
        return "\n".join(lines)


def compare(gspmd, text, keep):
    with tempfile.TemporaryDirectory(prefix="small") as work:
        path = os.path.join(work, "small.hlo")
        with open(path, "w") as file:
            file.write(text)
        before, after = xla_propagation.dump_propagation(path, keep or work, force=True)
        ours, _ = compare_propagation.propagate(gspmd, before)
        theirs, opcodes = compare_propagation.read_values(after)
        given, _ = compare_propagation.read_values(before)
    verdicts = defaultdict(list)
    for key, (shape, _, elements, sharding) in theirs.items():
        match = re.match(r"(\w+?_\d+)_(\w+)(\.\d+)?$", key[0])
        if not match or elements <= 1 or key not in ours or key not in given:
            continue
        one = compare_propagation.compare(ours[key][3], sharding, 8)
        other = compare_propagation.compare(sharding, ours[key][3], 8)
        kind = "equal"
        if one and not (one[0] and other[0]):
            kind = "finer" if one[0] else "coarser" if other[0] else "differs"
        verdicts[match[1]].append((kind, key, opcodes[key[0]], shape, sharding, ours[key][3]))
    return verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("gspmd", nargs="?", default=os.path.join(ROOT, "build/release/gspmd"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", type=int, default=20, help="programs for each operator")
    parser.add_argument("--only", default="", help="a pattern of operators")
    parser.add_argument("--most", type=int, default=1, help="differing programs to show of each")
    parser.add_argument("--keep", help="folder for XLA's dumps")
    args = parser.parse_args()
    rng, writer = random.Random(args.seed), Writer()
    for name, template in TEMPLATES.items():
        if re.search(args.only, name):
            for k in range(args.each):
                writer.add(f"{name}_{k}", template, rng)
    text = writer.text()
    verdicts = compare(args.gspmd, text, args.keep)
    print(f"{'operator':22} {'alike':>6} {'finer':>6} {'coarser':>8} {'differs':>8}   (programs)")
    for name in TEMPLATES:
        programs = {p: v for p, v in verdicts.items() if re.fullmatch(name + r"_\d+", p)}
        if not programs:
            continue
        worst = {
            p: next(
                (k for k in ("differs", "coarser", "finer") if any(x[0] == k for x in v)), "equal"
            )
            for p, v in programs.items()
        }
        n = Counter(worst.values())
        print(f"{name:22} {n['equal']:6} {n['finer']:6} {n['coarser']:8} {n['differs']:8}")
        shown = [p for p in programs if worst[p] != "equal"][: args.most]
        for program in shown:
            for line in writer.body:
                if line.strip().startswith(program + "_"):
                    print("      " + line.strip())
            for kind, key, op, shape, xla, us in programs[program]:
                if kind != "equal":
                    print(f"    {kind} {key[0]} {op} {shape}: XLA {xla}, we {us}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
