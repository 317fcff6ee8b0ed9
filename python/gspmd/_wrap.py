"""A partitioned program inside the interface of the program that it was made from.

`Partitioned.stablehlo_with_global_interface` is a module of global arrays: its `main` is a single
`sdy.manual_computation` over all axes of the mesh. XLA's own partitioner finds nothing to do there,
and shardings, layouts and donation of the executable are what JAX expects.
"""

from jaxlib.mlir import ir

_ARGUMENT_ATTRIBUTES = (
    "mhlo.layout_mode",
    "mhlo.memory_kind",
    "tf.aliasing_output",
    "jax.buffer_donor",
)
_RESULT_ATTRIBUTES = ("mhlo.layout_mode", "mhlo.memory_kind", "jax.result_info")


def wrap(partitioned, computation):
    """The module to compile in place of `computation`, in its context."""
    with computation.context:
        wrapped = ir.Module.parse(partitioned.stablehlo_with_global_interface())
        for named in computation.operation.attributes:
            wrapped.operation.attributes[named] = computation.operation.attributes[named]
        _copy_attributes(_main(computation), _main(wrapped))
        return wrapped


def _main(module):
    return ir.SymbolTable(module.operation)["main"]


def _copy_attributes(source, target):
    for kind, wanted in (("arg_attrs", _ARGUMENT_ATTRIBUTES), ("res_attrs", _RESULT_ATTRIBUTES)):
        if kind not in source.attributes:
            continue
        merged = []
        for old, new in zip(source.attributes[kind], target.attributes[kind], strict=True):
            entries = {n.name: n.attr for n in ir.DictAttr(new) if n.name not in wanted}
            entries |= {n.name: n.attr for n in ir.DictAttr(old) if n.name in wanted}
            merged.append(ir.DictAttr.get(entries))
        target.attributes[kind] = ir.ArrayAttr.get(merged)
