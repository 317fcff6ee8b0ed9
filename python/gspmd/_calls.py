"""Custom-calls through which XLA's partitioner calls Python, answered before ours runs.

`jax.experimental.custom_partitioning`: completion says how the call's arrays are laid out; JAX's
callback then gives the program of one device and the shardings that it wants; and the call becomes
a manual region around that program.

`jax.debug.inspect_array_sharding`: the callback is a pointer that only XLA can read. A program that
does nothing but inspect arrays of the completed shardings is compiled for it.
"""

import traceback

import jax
from jax._src import compiler as _compiler
from jax._src import custom_partitioning as _custom_partitioning
from jaxlib import xla_client as xc
from jaxlib.mlir import ir

from gspmd import _manual

_INSPECTION = "InspectSharding"
_CUSTOM = "CustomSPMDPartitioning"


def settle(computation, text, complete, compile_arguments):
    """The module's text without such calls; their callbacks have been called.

    complete(text, target): the layouts of all calls of a target, see `_core.custom_calls`.
    compile_arguments: (backend, executable_devices, compile_options).
    """
    targets = [t for t in (_CUSTOM, _INSPECTION) if f"@{t}(" in text]
    if not targets:
        return text
    with computation.context, ir.Location.unknown():
        module = ir.Module.parse(text)
        if _CUSTOM in targets:
            _expand(module, complete(text, _CUSTOM))
            text = _manual.text_of(module)
        if _INSPECTION in targets:
            _inspect(module, complete(text, _INSPECTION), *compile_arguments)
            text = _manual.text_of(module)
    return text


def _calls(module, target):
    found = []

    def look(op):
        if op.name == "stablehlo.custom_call":
            if ir.StringAttr(op.attributes["call_target_name"]).value == target:
                found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(look)
    return found


def _key(op):
    return ir.StringAttr(op.attributes["backend_config"]).value_bytes


# --- Custom partitioning


def _expand(module, layouts):
    # A call in a function that is called several times is expanded for the first one.
    of_key = {layout["backend_config"]: layout for layout in reversed(layouts)}
    for number, op in enumerate(_calls(module, _CUSTOM)):
        key = _key(op)
        if key not in of_key:  # in code that is never reached
            continue
        code, given, made = _partition(op, of_key[key], key)
        name = f"custom_partitioning_{number}"
        local = _manual.move_functions(ir.Module.parse(code), module, name)
        types = [v.type for v in op.operands], [v.type for v in op.results]
        _manual.add_functions(
            module,
            _manual.between_custom_calls(
                f"func.func private @{name}", *types, local, _texts(given), _texts(made)
            ),
        )
        call = ir.Operation.create(
            "func.call",
            results=types[1],
            operands=list(op.operands),
            attributes={"callee": ir.FlatSymbolRefAttr.get(name)},
            ip=ir.InsertionPoint(op),
            loc=op.location,
        )
        for old, new in zip(op.results, call.results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()


def _texts(shardings):
    return [str(s) for s in shardings]


def _partition(op, layout, key):
    """What JAX's callback says: (bytecode of one device's program, operands' and results'
    shardings)."""
    operands = [_xla_shape(v.type) for v in op.operands]
    results = [_xla_shape(v.type) for v in op.results]
    given = [xc.HloSharding.from_string(v["hlo"]) for v in layout["operands"]]
    made = [xc.HloSharding.from_string(v["hlo"]) for v in layout["results"]]
    shape, sharding = results[0], made[0]
    if len(results) != 1:
        shape = xc.Shape.tuple_shape(results)
        sharding = xc.HloSharding.tuple_sharding(shape, made)
    try:
        code, given, made = _custom_partitioning._custom_partitioning_partition(
            operands, given, shape, sharding, key
        )
    except Exception as error:  # as XLA reports what its callbacks raise
        text = "".join(traceback.format_exception(error))
        raise jax.errors.JaxRuntimeError(f"INTERNAL: custom_partitioner: {text}") from error
    return code, given, made.tuple_elements() if len(results) != 1 else [made]


def _xla_shape(type_):
    shaped = ir.RankedTensorType(type_)
    return xc.Shape.array_shape(_manual.numpy_type(shaped.element_type), tuple(shaped.shape))


# --- Inspection


def _inspect(module, layouts, backend, devices, options):
    calls = {_key(op): op for op in _calls(module, _INSPECTION)}
    arguments, lines = [], []
    for number, layout in enumerate(layouts):
        op = calls[layout["backend_config"]]
        (operand,) = layout["operands"]
        type_, config = op.operands[0].type, op.attributes["backend_config"]
        sharding = f" {{sdy.sharding = {operand['sdy']}}}" if operand["sdy"] else ""
        arguments.append(f"%a{number}: {type_}{sharding}")
        lines.append(
            f"%{number} = stablehlo.custom_call @{_INSPECTION}(%a{number})"
            f" {{has_side_effect = true, backend_config = {config}}} : ({type_}) -> {type_}"
        )
    number = options.executable_build_options.num_partitions
    mesh = next((f"sdy.mesh @mesh = {v['mesh'].removeprefix('#sdy.mesh')}" for v in layouts), "")
    asking = ir.Module.parse(
        f"module @inspect_sharding attributes {{mhlo.num_partitions = {number} : i32,"
        f" mhlo.num_replicas = 1 : i32}} {{\n{mesh}\n"
        f"func.func public @main({', '.join(arguments)}) {{\n" + "\n".join(lines) + "\nreturn\n}\n}"
    )
    options = type(options).ParseFromString(options.SerializeAsString())
    build = options.executable_build_options
    build.use_shardy_partitioner = True
    build.allow_spmd_sharding_propagation_to_parameters = [False] * len(arguments)
    build.allow_spmd_sharding_propagation_to_output = [False]
    _compiler.backend_compile_and_load(backend, asking, devices, options, [])
    for op in calls.values():
        op.erase()
