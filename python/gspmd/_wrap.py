"""A partitioned program inside the interface of the program that it was made from.

`Partitioned.stablehlo_with_global_interface` is a module of global arrays: its `main` is a single
`sdy.manual_computation` over all axes of the mesh. XLA's own partitioner finds nothing to do there,
and shardings, layouts and donation of the executable are what JAX expects.
"""

from jaxlib.mlir import ir

from gspmd._core import Error

_ARGUMENT_ATTRIBUTES = (
    "mhlo.layout_mode",
    "mhlo.memory_kind",
    "tf.aliasing_output",
    "jax.buffer_donor",
)
_RESULT_ATTRIBUTES = ("mhlo.layout_mode", "mhlo.memory_kind", "jax.result_info")


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
        _copy_attributes(_main(computation), _main(wrapped))
        return wrapped, for_shardy


def _between_custom_calls(partitioned, computation):
    """The older way: the custom calls at which XLA's GSPMD enters and leaves manual code."""
    module = ir.Module.parse(partitioned.text("mlir", shardings=False))
    local, main = _main(module), _main(computation)
    manual = ir.StringAttr.get("{manual}")

    def mark(op):
        if op.name not in ("func.func", "func.return", "stablehlo.return"):
            op.attributes["mhlo.sharding"] = manual
        return ir.WalkResult.ADVANCE

    local.operation.walk(mark)
    lines, blocks, results = [], [], []
    ins, outs = main.type.inputs, main.type.results
    local_ins, local_outs = local.type.inputs, local.type.results

    def custom_call(result, target, operand, sharding, source, to):
        lines.append(
            f"{result} = stablehlo.custom_call @{target}({operand})"
            f' {{mhlo.sharding = "{sharding}"}} : ({source}) -> {to}'
        )
        return result

    for k, (whole, block) in enumerate(zip(ins, local_ins, strict=True)):
        sharding = partitioned.input_shardings[k]
        placed = custom_call(f"%p{k}", "Sharding", f"%arg{k}", sharding, whole, whole)
        blocks.append(
            custom_call(f"%b{k}", "SPMDFullToShardShape", placed, "{manual}", whole, block)
        )
    head = f"%x:{len(outs)} = " if outs else ""
    lines.append(
        f'{head}func.call @spmd_main({_listed(blocks)}) {{mhlo.sharding = "{{manual}}"}} :'
        f" ({_listed(local_ins)}) -> ({_listed(local_outs)})"
    )
    for k, (whole, block) in enumerate(zip(outs, local_outs, strict=True)):
        kept = custom_call(f"%m{k}", "Sharding", f"%x#{k}", "{manual}", block, block)
        sharding = partitioned.output_shardings[k]
        results.append(custom_call(f"%r{k}", "SPMDShardToFullShape", kept, sharding, block, whole))
    returned = f"{_listed(results)} : {_listed(outs)}" if outs else ""
    lines.append(f"return {returned}")
    arguments = [
        f'%arg{k}: {t} {{mhlo.sharding = "{s}"}}'
        for k, (t, s) in enumerate(zip(ins, partitioned.input_shardings, strict=True))
    ]
    types = [
        f'{t} {{mhlo.sharding = "{s}"}}'
        for t, s in zip(outs, partitioned.output_shardings, strict=True)
    ]
    declared = f"func.func private @spmd_main({_listed(local_ins)}) -> ({_listed(local_outs)})"
    wrapped = ir.Module.parse(
        f"func.func public @main({_listed(arguments)}) -> ({_listed(types)}) {{\n"
        + "\n".join(lines)
        + f"\n}}\n{declared}"
    )
    ir.SymbolTable(wrapped.operation)["spmd_main"].erase()
    local.attributes["sym_name"] = ir.StringAttr.get("spmd_main")
    local.attributes["sym_visibility"] = ir.StringAttr.get("private")
    for name in ("arg_attrs", "res_attrs"):
        if name in local.attributes:
            del local.attributes[name]
    for operation in list(module.body.operations):
        operation.move_after(list(wrapped.body.operations)[-1])
    wrapped.operation.verify()
    return wrapped


def _listed(items):
    return ", ".join(map(str, items))


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
