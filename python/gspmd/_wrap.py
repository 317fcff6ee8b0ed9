"""A per-device program inside the interface of the program that it was made from.

The result is one StableHLO module with global arrays: its `main` is a single
`sdy.manual_computation` over all axes of the mesh, which calls the per-device program. XLA's own
partitioner then finds nothing to do, and shardings, layouts and donation of the executable are what
JAX expects.
"""

from jaxlib import _hlo, _jax
from jaxlib.mlir import ir

MESH = "gspmd_mesh"
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
        module = ir.Module.parse(_per_device_stablehlo(partitioned))
        local = _main(module)
        main = _main(computation)
        text = _interface_text(partitioned, local, main)
        _make_private(local)
        wrapped = ir.Module.parse(text)
        ir.SymbolTable(wrapped.operation)["spmd_main"].erase()
        for operation in list(module.body.operations):
            operation.move_after(_last(wrapped))
        for name in ("sym_name", "mhlo.num_partitions", "mhlo.num_replicas"):
            if name in computation.operation.attributes:
                wrapped.operation.attributes[name] = computation.operation.attributes[name]
        _copy_attributes(main, _main(wrapped))
        wrapped.operation.verify()
        return wrapped


def _per_device_stablehlo(partitioned):
    hlo = partitioned.hlo(metadata=True, shardings=False)
    proto = _hlo.hlo_module_from_text(hlo).as_serialized_hlo_module_proto()
    return _jax.mlir.xla_computation_to_mlir_module(_hlo.XlaComputation(proto))


def _main(module):
    return ir.SymbolTable(module.operation)["main"]


def _last(module):
    return list(module.body.operations)[-1]


def _make_private(function):
    attributes = function.attributes
    attributes["sym_name"] = ir.StringAttr.get("spmd_main")
    attributes["sym_visibility"] = ir.StringAttr.get("private")
    for name in ("arg_attrs", "res_attrs"):
        if name in attributes:
            del attributes[name]


def _interface_text(partitioned, local, main):
    """`main` with its mesh; the per-device function that it calls is declared only."""
    ins, outs = main.type.inputs, main.type.results
    local_ins, local_outs = local.type.inputs, local.type.results
    in_shardings, out_shardings = (
        partitioned.sdy_input_shardings,
        partitioned.sdy_output_shardings,
    )

    def annotated(names, types, shardings):
        pairs = zip(names, types, shardings, strict=True)
        return ", ".join(f"{n}{t} {{sdy.sharding = {s}}}" for n, t, s in pairs)

    def listed(items):
        return ", ".join(str(i).removeprefix("#sdy.sharding") for i in items)

    arguments = [f"%arg{i}" for i in range(len(ins))]
    blocks = [f"%block{i}" for i in range(len(ins))]
    parameters = annotated([f"{a}: " for a in arguments], ins, in_shardings)
    results = annotated([""] * len(outs), outs, out_shardings)
    block_parameters = listed(f"{b}: {t}" for b, t in zip(blocks, local_ins, strict=True))
    all_axes = listed(f'"{axis}"' for axis in partitioned.axes)

    def assigned(name):
        return f"%{name}:{len(outs)} = " if outs else ""

    def uses(name):
        return listed(f"%{name}#{i}" for i in range(len(outs)))

    def returned(operation, name, types):
        return f"{operation} {uses(name)} : {listed(types)}" if outs else operation

    return f"""
module {{
  sdy.mesh @{MESH} = {partitioned.mesh.removeprefix("#sdy.mesh")}
  func.func public @main({parameters}) -> ({results}) {{
    {assigned("r")}sdy.manual_computation({listed(arguments)})
        in_shardings=[{listed(in_shardings)}] out_shardings=[{listed(out_shardings)}]
        manual_axes={{{all_axes}}} ({block_parameters}) {{
      {assigned("x")}func.call @spmd_main({listed(blocks)})
          : ({listed(local_ins)}) -> ({listed(local_outs)})
      {returned("sdy.return", "x", local_outs)}
    }} : ({listed(ins)}) -> ({listed(outs)})
    {returned("return", "r", outs)}
  }}
  func.func private @spmd_main({listed(local_ins)}) -> ({listed(local_outs)})
}}
"""


def _copy_attributes(source, target):
    for kind, wanted in (("arg_attrs", _ARGUMENT_ATTRIBUTES), ("res_attrs", _RESULT_ATTRIBUTES)):
        if kind not in source.attributes:
            continue
        merged = []
        for old, new in zip(source.attributes[kind], target.attributes[kind], strict=True):
            entries = {named.name: named.attr for named in ir.DictAttr(new)}
            entries |= {n.name: n.attr for n in ir.DictAttr(old) if n.name in wanted}
            merged.append(ir.DictAttr.get(entries))
        target.attributes[kind] = ir.ArrayAttr.get(merged)
