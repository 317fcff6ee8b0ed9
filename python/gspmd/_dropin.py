"""gspmd as the partitioner under unmodified JAX programs.

One function of JAX is replaced: the one that hands a lowered module to the runtime's compiler. A
module for several devices is partitioned here and compiled as one in which nothing is left to
partition; all others pass untouched.
"""

import contextlib
import threading

import jax
from jax._src import compiler as _compiler
from jaxlib import _jax

from gspmd import _calls, _core, _wrap

_lock = threading.Lock()
_original = None
_installed = False
_in_use = jax.make_user_context(False)
_last = threading.local()


@contextlib.contextmanager
def use():
    """Within this context `jax.jit` over several devices is partitioned by gspmd.

    The same jitted function may be used inside and outside: JAX keeps an executable for each.
    """
    _hook()
    with _in_use(True):
        yield


def install():
    """From now on gspmd partitions every `jax.jit` over several devices of this process.

    What was compiled before stays as it is; `jax.clear_caches()` forgets it.
    """
    global _installed
    _hook()
    _installed = True


def uninstall():
    """Undoes `install`. Executables that were made in between stay as they are."""
    global _installed
    _installed = False


def last_report():
    """The `_core.Partitioned` of the last program that this thread had partitioned, or None."""
    return getattr(_last, "partitioned", None)


def _hook():
    global _original
    with _lock:
        if _original is None:
            _original = _compiler.compile_or_get_cached
            _compiler.compile_or_get_cached = _compile


def _compile(
    backend,
    computation,
    devices,
    compile_options,
    host_callbacks,
    executable_devices,
    *args,
    **kwargs,
):
    if (_installed or _in_use.value) and _is_ours(backend, compile_options):
        computation, compile_options = _partitioned(
            computation, compile_options, backend, executable_devices
        )
    return _original(
        *(backend, computation, devices, compile_options, host_callbacks, executable_devices),
        *args,
        **kwargs,
    )


def _is_ours(backend, options):
    build = options.executable_build_options
    several = build.num_partitions > 1 and build.num_replicas == 1
    return several and not isinstance(backend, getattr(_jax, "CompileOnlyPyClient", ()))


def _partitioned(computation, options, backend, devices):
    options = type(options).ParseFromString(options.SerializeAsString())
    build = options.executable_build_options
    freedom = (
        build.num_partitions,
        list(build.allow_spmd_sharding_propagation_to_parameters),
        list(build.allow_spmd_sharding_propagation_to_output),
    )

    def complete(text, target):
        return _core.custom_calls(text.encode(), *freedom, target)

    text = computation.operation.get_asm(enable_debug_info=True)
    text = _calls.settle(computation, text, complete, (backend, devices, options))
    name = computation.operation.attributes["sym_name"].value
    partitioned = _core.partition(text.encode(), name, *freedom)
    _last.partitioned = partitioned
    wrapped, for_shardy = _wrap.wrap(partitioned, computation)
    build.use_shardy_partitioner = for_shardy
    build.allow_spmd_sharding_propagation_to_parameters = [False] * len(partitioned.input_shardings)
    build.allow_spmd_sharding_propagation_to_output = [False] * len(partitioned.output_shardings)
    return wrapped, options
