#!/usr/bin/env python3
"""From `lower()` to a compiled executable: under gspmd.use() against stock JAX, in one process.

    compile_in_jax.py               # every example of examples/jax
    compile_in_jax.py moe ...       # some

The two sides take turns, nothing is cached between them, and the minimum of --reps counts. Columns:
milliseconds of stock JAX, of gspmd, their ratio, and how many of gspmd's milliseconds pass before
XLA starts. Exit code 1 where the median of the ratios is above 1.
"""

import argparse
import importlib
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "examples/jax"))
import common  # noqa: E402 (sets the number of devices, so it comes before jax)
import jax  # noqa: E402

import gspmd  # noqa: E402
from gspmd import _dropin  # noqa: E402

EXAMPLES = ("transformer", "moe", "pipeline", "convolution", "uneven", "contrastive")


class Clock:
    """Seconds spent in a function."""

    def __init__(self, f):
        self.f, self.seconds = f, 0.0

    def __call__(self, *args):
        start = time.perf_counter()
        try:
            return self.f(*args)
        finally:
            self.seconds = time.perf_counter() - start


def captured(name):
    """(step, its arguments) of what an example would train."""
    found = []

    def take(loss, params, batch, mesh, param_specs, batch_spec, **_):
        def place(x, spec):
            return jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))

        batch = jax.tree.map(lambda x: place(x, batch_spec), batch)
        step = common.sgd_step(loss, 0.05)
        found.append((step, jax.tree.map(place, params, param_specs), batch))

    module, train = importlib.import_module(name), common.train
    common.train = take
    try:
        module.main()
    finally:
        common.train = train
    ((step, *arguments),) = found
    return step, arguments


def seconds(step, arguments):
    jax.clear_caches()
    traced = jax.jit(step).trace(*arguments)
    start = time.perf_counter()
    traced.lower().compile()
    return time.perf_counter() - start


def measure(name, reps):
    step, arguments = captured(name)
    ours = _dropin._partitioned = Clock(getattr(_dropin._partitioned, "f", _dropin._partitioned))
    stock, used, before = [], [], []
    for _ in range(reps):
        stock.append(seconds(step, arguments))
        with gspmd.use():
            used.append(seconds(step, arguments))
        before.append(ours.seconds)
    return min(stock), min(used), min(before)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=EXAMPLES)
    parser.add_argument("--reps", type=int, default=5)
    options = parser.parse_args()
    ratios = []
    print(f"{'example':14}{'stock ms':>10}{'gspmd ms':>10}{'ratio':>8}{'before XLA ms':>15}")
    for name in options.names:
        stock, used, before = measure(name, options.reps)
        ratios.append(used / stock)
        print(
            f"{name:14}{stock * 1e3:10.1f}{used * 1e3:10.1f}{ratios[-1]:8.2f}{before * 1e3:15.1f}"
        )
    print(f"median ratio {statistics.median(ratios):.2f}, largest {max(ratios):.2f}")
    sys.exit(statistics.median(ratios) > 1)


if __name__ == "__main__":
    main()
