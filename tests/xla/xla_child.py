"""Runs a piece of XLA's compiler in a forked child, which is killed when it has done what we want.

XLA aborts the process on some malformed input, takes its flags only once per process, and cannot be
told to stop after a pass. Import this before any XLA client exists in the process.
"""

import os
import signal
import tempfile
import time


def run(work, finished, timeout=300):
    """Forks, calls work() and returns what the child wrote to its standard output and error.

    The child is killed once finished(its output so far) is true. An exception in work() becomes a
    last line "refused: MESSAGE". Raises TimeoutError after `timeout` seconds.
    """
    with tempfile.NamedTemporaryFile(prefix="xla_child") as log:
        pid = os.fork()
        if pid == 0:
            _child(work, log.name)
        start, done = time.time(), 0
        while not done:
            time.sleep(0.02)
            done, _ = os.waitpid(pid, os.WNOHANG)
            output = _read(log.name)
            late = time.time() - start > timeout
            if not done and (late or finished(output)):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                if late:
                    raise TimeoutError(f"no answer in {timeout} s: {output[-300:]}")
                break
        return _read(log.name)


def _read(path):
    with open(path, errors="replace") as file:
        return file.read()


def _child(work, log):
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    try:
        work()
    except BaseException as error:  # never return into the parent's code
        os.write(2, f"\nrefused: {error}\n".encode())
    os._exit(0)


def compile_for_devices(text, n, flags="", allow=None, partitioner=True):
    """In a child: compiles HLO text for n host devices, by GSPMD's partitioner if `partitioner`.

    allow: {"parameters": [bool], "output": [bool]}, what propagation may give a sharding to.
    """
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={n} {flags}"
    from jaxlib import _hlo, _jax
    from jaxlib import xla_client as xc

    proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    client = xc.make_cpu_client()
    options = xc.CompileOptions()
    options.num_replicas, options.num_partitions = 1, n
    build = options.executable_build_options
    build.num_replicas, build.num_partitions = 1, n
    build.use_spmd_partitioning = partitioner
    build.use_shardy_partitioner = False
    for kind, flags_of_kind in (allow or {}).items():
        setattr(build, f"allow_spmd_sharding_propagation_to_{kind}", flags_of_kind)
    mlir = _jax.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto))
    client.compile_and_load(mlir, _jax.DeviceList(tuple(client.devices()[:n])), options)


def check_shapes(text):
    """Parses HLO text and has the conversion to StableHLO check its shapes; no devices needed."""
    from jaxlib import _hlo, _jax

    proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    mlir = _jax.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto))
    _jax.mlir.mlir_module_to_xla_computation(mlir, use_tuple_args=False, return_tuple=False)
