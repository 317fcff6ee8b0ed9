#!/usr/bin/env python3
"""Does XLA accept this HLO text: its parser, the conversion's shape checks, and its verifier?

    xla_parse.py [--timeout S] FILE.hlo...

Prints one line a file, `FILE: ok` or `FILE: MESSAGE`; exit code 1 if any is refused. Needs jaxlib.
Each file is compiled in a child for as many devices as its header says, up to XLA's first passes.
XLA's CPU client stops at 2048 devices; a file for more is parsed and its shapes are checked, and
its line says so.

As a library: `parse_files(paths) -> {path: None or message}`, from any process.
"""

import argparse
import json
import os
import re
import subprocess
import sys

MOST_DEVICES = 2048
CHECKED = "Running HLO pass pipeline"  # XLA logs it when the module has been read and checked


def num_partitions(text):
    match = re.search(r"num_partitions=(\d+)", text.split("\n", 1)[0])
    return int(match[1]) if match else 1


def parse_here(path, timeout):
    """None or XLA's message. Only in a process without an XLA client, as children are forked."""
    import xla_child

    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    n = num_partitions(text)

    def compile_it():
        if n > MOST_DEVICES:
            xla_child.check_shapes(text)
            print(CHECKED, flush=True)
        else:
            xla_child.compile_for_devices(text, n, partitioner=False)

    try:
        output = xla_child.run(compile_it, lambda so_far: CHECKED in so_far, timeout)
    except TimeoutError as error:
        return str(error)
    if CHECKED in output:
        return None
    refused = output.rfind("refused: ")
    if refused >= 0:
        return output[refused + len("refused: ") :].strip()
    return "XLA ended the process: " + output.strip()[-300:]


def parse_files(paths, timeout=60):
    command = [sys.executable, os.path.abspath(__file__), "--json", "--timeout", str(timeout)]
    output = subprocess.run([*command, *paths], check=True, capture_output=True, text=True).stdout
    return json.loads(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--timeout", type=float, default=60, help="seconds a file")
    parser.add_argument("--json", action="store_true", help="print {file: null or message}")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    os.environ["TF_CPP_VMODULE"] = "hlo_pass_pipeline=1"
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "0"
    import jaxlib.xla_client  # noqa: F401  once, before the children are forked

    messages = {}
    for path in args.files:
        messages[path] = message = parse_here(path, args.timeout)
        if not args.json:
            print(f"{path}: {'ok' if message is None else message}", flush=True)
    if args.json:
        print(json.dumps(messages))
        return 0
    return 1 if any(messages.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
