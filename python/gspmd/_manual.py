"""Functions of MLIR around code that one device runs."""

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir

_NAMED_TYPES = {
    "i1": np.bool_,
    "bf16": ml_dtypes.bfloat16,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
}


def text_of(module) -> str:
    return module.operation.get_asm(enable_debug_info=True)


def main_of(module):
    return ir.SymbolTable(module.operation)["main"]


def listed(items) -> str:
    return ", ".join(map(str, items))


def numpy_type(element_type) -> np.dtype:
    """f32 -> float32, ui8 -> uint8, f8E4M3FN -> float8_e4m3fn."""
    name = str(element_type)
    if name in _NAMED_TYPES:
        return np.dtype(_NAMED_TYPES[name])
    if name.startswith("f8") or name.startswith("f4"):
        return np.dtype(getattr(ml_dtypes, f"float{name[1]}_{name[2:].lower()}"))
    for prefix, kind in (("ui", "uint"), ("i", "int"), ("f", "float")):
        if name.startswith(prefix):
            kind += name.removeprefix(prefix)
            return np.dtype(getattr(ml_dtypes, kind) if kind.endswith(("int2", "int4")) else kind)
    raise TypeError(f"no numpy type for {name}")


def is_token(type_) -> bool:
    return str(type_) == "!stablehlo.token"


def between_custom_calls(head, ins, outs, local, in_shardings, out_shardings) -> str:
    """Text of a function of global arrays that calls `local` on each device's blocks.

    The border are the custom calls at which XLA's GSPMD enters and leaves manual code. head is
    "func.func public @main"; shardings are HLO's texts.
    """
    lines, blocks, results = [], [], []
    local_ins, local_outs = local.type.inputs, local.type.results

    def custom_call(result, target, operand, sharding, source, to):
        if is_token(source):
            return operand
        lines.append(
            f"{result} = stablehlo.custom_call @{target}({operand})"
            f' {{mhlo.sharding = "{sharding}"}} : ({source}) -> {to}'
        )
        return result

    for k, (whole, block) in enumerate(zip(ins, local_ins, strict=True)):
        placed = custom_call(f"%p{k}", "Sharding", f"%arg{k}", in_shardings[k], whole, whole)
        blocks.append(
            custom_call(f"%b{k}", "SPMDFullToShardShape", placed, "{manual}", whole, block)
        )
    start = f"%x:{len(outs)} = " if outs else ""
    lines.append(
        f'{start}func.call @{local.name.value}({listed(blocks)}) {{mhlo.sharding = "{{manual}}"}} :'
        f" ({listed(local_ins)}) -> ({listed(local_outs)})"
    )
    for k, (whole, block) in enumerate(zip(outs, local_outs, strict=True)):
        kept = custom_call(f"%m{k}", "Sharding", f"%x#{k}", "{manual}", block, block)
        results.append(
            custom_call(f"%r{k}", "SPMDShardToFullShape", kept, out_shardings[k], block, whole)
        )
    returned = f"{listed(results)} : {listed(outs)}" if outs else ""
    lines.append(f"return {returned}")
    arguments = [_annotated(f"%arg{k}: {t}", t, in_shardings[k]) for k, t in enumerate(ins)]
    types = [_annotated(t, t, s) for t, s in zip(outs, out_shardings, strict=True)]
    declared = (
        f"func.func private @{local.name.value}({listed(local_ins)}) -> ({listed(local_outs)})"
    )
    body = "\n".join(lines)
    return f"{head}({listed(arguments)}) -> ({listed(types)}) {{\n{body}\n}}\n{declared}"


def _annotated(text, type_, sharding):
    return f"{text}" if is_token(type_) else f'{text} {{mhlo.sharding = "{sharding}"}}'


def add_functions(module, text):
    """Puts the functions of a text into a module; what it only declares is there already."""
    source = ir.Module.parse(text)
    for op in list(source.body.operations):
        if len(op.regions[0].blocks):
            module.body.append(op)


def move_functions(source, target, name):
    """Moves all functions of `source` into `target`: @main as @name_main, ... That of main."""
    main = main_of(source)
    functions = [op for op in source.body.operations if op.operation.name == "func.func"]

    def rename(op):
        if op.name == "func.call":
            callee = ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            op.attributes["callee"] = ir.FlatSymbolRefAttr.get(f"{name}_{callee}")
        return ir.WalkResult.ADVANCE

    for function in functions:
        function.operation.walk(rename)
        old = ir.StringAttr(function.attributes["sym_name"]).value
        function.attributes["sym_name"] = ir.StringAttr.get(f"{name}_{old}")
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    for kind in ("arg_attrs", "res_attrs"):
        if kind in main.attributes:
            del main.attributes[kind]
    for function in functions:
        target.body.append(function)
    return main
