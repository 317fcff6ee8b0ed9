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
import signal
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SHARED = os.environ.get("GSPMD_SHARED", os.path.join(ROOT, "..", "shared"))
DEFAULT_OUT = os.path.join(ROOT, "build", "xla_dumps")

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


def compile_in_child(path, dump_dir, log_path):
    """Never returns: compiles with XLA's partitioner, dumping around sharding propagation."""
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    with open(path) as file:
        text = without_sdy(file.read())
    n = num_partitions(text)
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
    os.environ["XLA_FLAGS"] = (
        f"--xla_force_host_platform_device_count={n} --xla_dump_to={dump_dir} "
        "--xla_dump_hlo_as_text --xla_dump_hlo_pass_re=sharding-propagation|spmd-partitioning"
    )
    from jaxlib import _hlo, _jax
    from jaxlib import xla_client as xc

    module = _hlo.hlo_module_from_text(text)
    computation = _hlo.XlaComputation(module.as_serialized_hlo_module_proto())
    client = xc.make_cpu_client()
    options = xc.CompileOptions()
    options.num_replicas, options.num_partitions = 1, n
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = 1, n
    build.use_spmd_partitioning = True
    build.use_shardy_partitioner = False
    for kind in ("parameters", "output"):
        allow = header_flags(text, f"allow_spmd_sharding_propagation_to_{kind}")
        if allow:
            setattr(build, f"allow_spmd_sharding_propagation_to_{kind}", allow)
    mlir = _jax.mlir.xla_computation_to_mlir_module(computation)
    client.compile_and_load(mlir, _jax.DeviceList(tuple(client.devices()[:n])), options)
    os._exit(0)


def find_dump(dump_dir, when):
    names = [f for f in os.listdir(dump_dir) if f"{when}_sharding-propagation" in f]
    return os.path.join(dump_dir, sorted(names)[-1]) if names else None


def propagation_is_over(dump_dir):
    # The dump before the next pass of the pipeline exists: the one after ours is complete.
    return any("before_spmd-partitioning" in f for f in os.listdir(dump_dir))


def run_child(path, dump_dir, log_path, timeout):
    pid = os.fork()
    if pid == 0:
        try:
            compile_in_child(path, dump_dir, log_path)
        except BaseException as error:  # the child must never return into the parent's code
            os.write(2, f"{error}\n".encode())
        os._exit(1)
    start = time.time()
    while time.time() - start < timeout:
        time.sleep(0.05)
        done, _ = os.waitpid(pid, os.WNOHANG)
        if done == pid:
            return
        if propagation_is_over(dump_dir):
            break
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def dump_propagation(path, out_dir=DEFAULT_OUT, timeout=300, force=False):
    """The paths of (before, after) for an HLO file; RuntimeError with XLA's last words."""
    base = os.path.basename(path).removesuffix(".hlo")
    targets = [os.path.join(out_dir, f"{base}.{when}.hlo") for when in ("before", "after")]
    if not force and all(os.path.exists(t) for t in targets):
        return targets
    os.makedirs(out_dir, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="xla_propagation") as work:
        dump_dir = os.path.join(work, "dump")
        os.mkdir(dump_dir)
        log_path = os.path.join(work, "log")
        run_child(path, dump_dir, log_path, timeout)
        found = [find_dump(dump_dir, when) for when in ("before", "after")]
        if not all(found):
            words = ""
            if os.path.exists(log_path):
                with open(log_path, errors="replace") as log:
                    words = log.read().strip()[-400:]
            raise RuntimeError(f"no dump of {path}: {words or 'timeout'}")
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
