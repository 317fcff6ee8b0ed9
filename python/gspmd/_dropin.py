"""gspmd as the partitioner under unmodified JAX programs.

One function of JAX is replaced: the one that hands a lowered module to the runtime's compiler. A
module for several devices is partitioned here and compiled as one in which nothing is left to
partition; all others pass untouched.
"""

import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import jax
from jax._src import compiler as _compiler
from jaxlib import _jax

from gspmd import _calls, _core, _wrap

if TYPE_CHECKING:
    from gspmd._partition import Partitioned

_lock = threading.Lock()
_original: Callable[..., Any] | None = None
_installed: str | None = None  # how errors are met, where gspmd is installed
_in_use = jax.make_user_context(None)
_last = threading.local()
_ON_ERROR = ("raise", "xla")


@contextlib.contextmanager
def use(*, on_error: str = "raise") -> Iterator[None]:
    """Within this context `jax.jit` over several devices is partitioned by gspmd.

    The same jitted function may be used inside and outside: JAX keeps an executable for each.

    on_error: what becomes of a program that gspmd refuses: "raise" gspmd.Error, or "xla": it is
      left to XLA's partitioner, with a warning.
    """
    _check(on_error)
    _hook()
    with _in_use(on_error):
        yield


def install(*, on_error: str = "raise") -> None:
    """From now on gspmd partitions every `jax.jit` over several devices of this process.

    What was compiled before stays as it is; `jax.clear_caches()` forgets it. on_error as in `use`.
    """
    global _installed
    _check(on_error)
    _hook()
    _installed = on_error


def uninstall() -> None:
    """Undoes `install`. Executables that were made in between stay as they are."""
    global _installed
    _installed = None


def last_report() -> "Partitioned | None":
    """The last program that this thread had partitioned under `use` or `install`, or None."""
    return getattr(_last, "report", None)


def _check(on_error):
    if on_error not in _ON_ERROR:
        raise ValueError(f'on_error is "raise" or "xla", got {on_error!r}')


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
    on_error = _in_use.value or _installed
    if on_error is not None and _is_ours(backend, compile_options):
        try:
            computation, compile_options = _partitioned(
                computation, compile_options, backend, executable_devices
            )
        except _core.Error as error:
            if on_error == "raise":
                raise
            warnings.warn(f"gspmd leaves a program to XLA: {error}", stacklevel=2)
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
    _last.report = _report(partitioned, text, name)
    wrapped, for_shardy = _wrap.wrap(partitioned, computation)
    build.use_shardy_partitioner = for_shardy
    build.allow_spmd_sharding_propagation_to_parameters = [False] * len(partitioned.input_shardings)
    build.allow_spmd_sharding_propagation_to_output = [False] * len(partitioned.output_shardings)
    return wrapped, options


def _report(partitioned, text, name):
    from gspmd import _partition, _program  # which use this module

    source = _program.Source(text.encode(), name, [], [])
    return _partition.Partitioned(partitioned, source)
