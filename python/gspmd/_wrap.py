"""A partitioned program inside the interface of the program that it was made from.

`Partitioned.stablehlo_with_global_interface` is a module of global arrays: its `main` is a single
`sdy.manual_computation` over all axes of the mesh. XLA's own partitioner finds nothing to do there,
and shardings, layouts and donation of the executable are what JAX expects.
"""

from jaxlib.mlir import ir

from gspmd import _manual
from gspmd._core import Error

_ARGUMENT_ATTRIBUTES = (
    "mhlo.layout_mode",
    "mhlo.memory_kind",
    "tf.aliasing_output",
    "jax.buffer_donor",
    "jax.token",
)
_RESULT_ATTRIBUTES = ("mhlo.layout_mode", "mhlo.memory_kind", "jax.result_info", "jax.token")


def wrap(partitioned, computation):
    """(module to compile in place of `computation`, in its context; whether Shardy reads it)."""
    with computation.context, ir.Location.unknown():
        try:
            wrapped, for_shardy = (
                ir.Module.parse(partitioned.stablehlo_with_global_interface()),
                True,
            )
        except Error:  # several meshes, or unreduced: what one region over one mesh can not say
            wrapped, for_shardy = _between_custom_calls(partitioned, computation), False
        for named in computation.operation.attributes:
            wrapped.operation.attributes[named] = computation.operation.attributes[named]
        _copy_attributes(_manual.main_of(computation), _manual.main_of(wrapped))
        return wrapped, for_shardy


def _between_custom_calls(partitioned, computation):
    """The older way: the custom calls at which XLA's GSPMD enters and leaves manual code."""
    module = ir.Module.parse(partitioned.text("mlir", shardings=False))
    manual = ir.StringAttr.get("{manual}")

    def mark(op):
        if op.name not in ("func.func", "func.return", "stablehlo.return"):
            op.attributes["mhlo.sharding"] = manual
        return ir.WalkResult.ADVANCE

    _manual.main_of(module).operation.walk(mark)
    wrapped = ir.Module.parse("module {}")
    main = _manual.main_of(computation)
    local = _manual.move_functions(module, wrapped, "spmd")
    _manual.add_functions(
        wrapped,
        _manual.between_custom_calls(
            "func.func public @main",
            *(main.type.inputs, main.type.results, local),
            *(partitioned.input_shardings, partitioned.output_shardings),
        ),
    )
    wrapped.operation.verify()
    return wrapped


def _copy_attributes(source, target):
    for kind, wanted in (("arg_attrs", _ARGUMENT_ATTRIBUTES), ("res_attrs", _RESULT_ATTRIBUTES)):
        if kind not in source.attributes or not len(source.attributes[kind]):
            continue
        merged = []
        for old, new in zip(source.attributes[kind], target.attributes[kind], strict=True):
            entries = {n.name: n.attr for n in ir.DictAttr(new) if n.name not in wanted}
            entries |= {n.name: n.attr for n in ir.DictAttr(old) if n.name in wanted}
            merged.append(ir.DictAttr.get(entries))
        target.attributes[kind] = ir.ArrayAttr.get(merged)
