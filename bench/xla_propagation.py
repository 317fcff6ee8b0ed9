#!/usr/bin/env python3
"""Keep XLA's module from right before and right after its own sharding propagation.

    xla_propagation.py [--out DIR] [--force] FILE.hlo...
    xla_propagation.py --all        # every .hlo of ../shared/real and ../shared/corpus

For FILE.hlo it writes DIR/FILE.before.hlo and DIR/FILE.after.hlo (default: build/xla_dumps) and
skips what is there already. Needs the jaxlib wheel of requirements-test.txt. Each file is compiled
in a forked child for as many host devices as its header says, which is killed as soon as the second
dump is complete, so no code is generated. XLA's CPU client stops at 2048 devices: a file
for more is reported as failed.

Shardy's attributes are removed first, since GSPMD's propagation does not read them; its markers of
results become copies, as in the module that both dumps show.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHARED = os.environ.get("GSPMD_SHARED", os.path.join(ROOT, "..", "shared"))
DEFAULT_OUT = os.path.join(ROOT, "build", "xla_dumps")
sys.path.insert(0, os.path.join(ROOT, "tests", "xla"))
import xla_child

RESULT_MARKER = re.compile(
    r'custom-call\(([^()]*)\), custom_call_target="xla\.sdy\.FuncResultSharding".*'
)
SDY_ATTRIBUTE = re.compile(
    r'xla\.sdy\.(sharding|sharding_rule|meshes|has_unreduced_axes)="(?:[^"\\]|\\.)*",?'
)


def without_sdy(text):
    text = RESULT_MARKER.sub(r"copy(\1)", text)
    text = SDY_ATTRIBUTE.sub("", text)
    return text.replace(", frontend_attributes={}", "")


def header_flags(text, name):
    """The header's list of booleans of that name, or None: `NAME={false,true}`."""
    head = text.split("\n", 1)[0]
    match = re.search(name + r"=\{([^}]*)\}", head)
    return [x.strip() == "true" for x in match[1].split(",")] if match else None


def num_partitions(text):
    match = re.search(r"num_partitions=(\d+)", text.split("\n", 1)[0])
    return int(match[1]) if match else 1


def compile_without_sdy(path, flags=""):
    """In a child: compiles with XLA's partitioner in its GSPMD mode."""
    with open(path) as file:
        text = without_sdy(file.read())
    kinds = ("parameters", "output")
    allow = {k: header_flags(text, f"allow_spmd_sharding_propagation_to_{k}") for k in kinds}
    xla_child.compile_for_devices(
        text,
        num_partitions(text),
        flags,
        {kind: flags for kind, flags in allow.items() if flags},
    )


def compile_with_dumps(path, dump_dir):
    """In a child: the same, dumping around sharding propagation."""
    passes = "sharding-propagation|spmd-partitioning"
    compile_without_sdy(
        path, f"--xla_dump_to={dump_dir} --xla_dump_hlo_as_text --xla_dump_hlo_pass_re={passes}"
    )


def find_dump(dump_dir, when):
    names = [f for f in os.listdir(dump_dir) if f"{when}_sharding-propagation" in f]
    return os.path.join(dump_dir, sorted(names)[-1]) if names else None


def propagation_is_over(dump_dir):
    # The dump before the next pass of the pipeline exists: the one after ours is complete.
    return any("before_spmd-partitioning" in f for f in os.listdir(dump_dir))


def dump_propagation(path, out_dir=DEFAULT_OUT, timeout=300, force=False):
    """The paths of (before, after) for an HLO file; RuntimeError with XLA's last words."""
    base = os.path.basename(path).removesuffix(".hlo")
    targets = [os.path.join(out_dir, f"{base}.{when}.hlo") for when in ("before", "after")]
    if not force and all(os.path.exists(t) for t in targets):
        return targets
    os.makedirs(out_dir, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="xla_propagation") as work:
        try:
            output = xla_child.run(
                lambda: compile_with_dumps(path, work),
                lambda _: propagation_is_over(work),
                timeout,
            )
        except TimeoutError as error:
            output = str(error)
        found = [find_dump(work, when) for when in ("before", "after")]
        if not all(found):
            raise RuntimeError(f"no dump of {path}: {output.strip()[-400:]}")
        for source, target in zip(found, targets, strict=True):
            shutil.copyfile(source, target)
    return targets


def all_given_files():
    files = []
    for folder in ("real", "corpus"):
        path = os.path.join(SHARED, folder)
        if not os.path.isdir(path):
            sys.exit(f"{path} is not there; set GSPMD_SHARED to the folder that has it")
        files += [os.path.join(path, f) for f in sorted(os.listdir(path)) if f.endswith(".hlo")]
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", default=DEFAULT_OUT)
    parser.add_argument("--all", action="store_true", help="every given program")
    parser.add_argument("--force", action="store_true", help="make them again")
    parser.add_argument("--timeout", type=float, default=300, help="seconds a file")
    parser.add_argument("files", nargs="*")
    args = parser.parse_args()
    failed = 0
    for path in all_given_files() if args.all else args.files:
        start = time.time()
        try:
            dump_propagation(path, args.out, args.timeout, args.force)
            print(f"{os.path.basename(path)}: {time.time() - start:.1f} s", flush=True)
        except RuntimeError as error:
            failed += 1
            print(f"{os.path.basename(path)}: FAILED: {error}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
