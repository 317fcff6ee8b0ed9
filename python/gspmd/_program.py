"""Programs of every form that JAX has, as bytes for the partitioner."""

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import export, stages
from jax.sharding import AbstractMesh, Mesh, NamedSharding
from jax.tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten
from jaxlib.mlir import ir


@dataclasses.dataclass
class Source:
    """A program and how its flat parameters relate to the arguments of the user's function."""

    code: bytes
    name: str
    free_parameters: list[bool]  # completion may choose; empty: as the program says
    free_results: list[bool]
    kept: Sequence[int] | None = None  # number of each parameter among the arguments; None: all
    input_names: list[str] | None = None  # None: they have none
    output_names: list[str] | None = None
    in_tree: Any = None
    out_tree: Any = None
    mesh: Mesh | AbstractMesh | None = None
    call: Callable | None = None

    def parameter_names(self, number: int) -> list[str]:
        """args[0]['w'], ... of the parameters that are kept."""
        if self.input_names is None:
            return [f"parameter {k}" for k in range(number)]
        kept = range(number) if self.kept is None else self.kept
        return [self.input_names[k] for k in kept]

    def with_names(self, message: str) -> str:
        """A message with argN, as programs name their parameters, told by the argument's name."""
        if self.input_names is None:
            return message
        names = self.parameter_names(len(self.input_names) if self.kept is None else len(self.kept))
        told = []
        for number in dict.fromkeys(int(n) for n in re.findall(r"\barg(\d+)\b", message)):
            if number < len(names):
                told.append(f"  arg{number} is {names[number]}")
        return "\n".join([message, *told])

    def unflatten_inputs(self, leaves):
        return leaves if self.in_tree is None else tree_unflatten(self.in_tree, leaves)

    def unflatten_outputs(self, leaves):
        return leaves if self.out_tree is None else tree_unflatten(self.out_tree, leaves)


def read(program, args, kwargs) -> Source:
    if isinstance(program, str | bytes):
        _no_arguments("a text", args, kwargs)
        return _from_text(program)
    if isinstance(program, export.Exported):
        _no_arguments("an exported function", args, kwargs)
        return _from_exported(program)
    if isinstance(program, stages.Lowered):
        _no_arguments("a lowered function", args, kwargs)
        return _from_lowered(program, None)
    if isinstance(program, stages.Traced):
        _no_arguments("a traced function", args, kwargs)
        return _from_lowered(_lower(program), None)
    if isinstance(program, stages.Wrapped) and hasattr(program, "trace"):
        _no_tracers(args, kwargs)
        return _from_lowered(_lower(program.trace(*args, **kwargs)), program, (args, kwargs))
    what = "a function that is not jitted" if callable(program) else type(program).__name__
    raise TypeError(
        "partition: `program` must be a jitted function, a traced, lowered or exported one, or the"
        f" text of a program; got {what}" + ("; wrap it in jax.jit" if callable(program) else "")
    )


def _no_arguments(what, args, kwargs):
    if args or kwargs:
        raise TypeError(f"partition: {what} takes no arguments, got {len(args) + len(kwargs)}")


def _no_tracers(args, kwargs):
    for path, leaf in tree_flatten_with_path((args, kwargs))[0]:
        if isinstance(leaf, jax.core.Tracer):
            name = _argument_name(path)
            raise jax.errors.TracerArrayConversionError(leaf) from TypeError(
                f"partition: {name} is a traced value; call partition outside of jit"
            )


def _argument_name(path):
    """args[1]['w'] for a path in (args, kwargs)."""
    return ("args" if path[0].idx == 0 else "kwargs") + keystr(path[1:])


def _lower(traced):
    try:
        return traced.lower()
    except ValueError as error:
        if "AbstractMesh" not in str(error) and "device" not in str(error):
            raise
        return traced.lower(lowering_platforms=(jax.default_backend(),))


def _from_lowered(lowered, function, arguments=((), {})) -> Source:
    module = lowered.compiler_ir("stablehlo")
    leaves = tree_flatten_with_path(lowered.args_info)[0]
    outputs = tree_flatten_with_path(lowered.out_info)[0]
    kept = lowered._lowering.compile_args.get("kept_var_idx")
    shardings = lowered._lowering.compile_args.get("in_shardings", ())
    call = function if function is not None else _compiled_call(lowered)
    return Source(
        **_module_fields(module),
        kept=sorted(kept) if kept is not None else range(len(leaves)),
        input_names=[_argument_name(path) for path, _ in leaves],
        output_names=[f"result{keystr(path)}" for path, _ in outputs],
        in_tree=lowered.in_tree,
        out_tree=lowered.out_tree,
        mesh=_mesh_of(arguments, shardings),
        call=call,
    )


def _compiled_call(lowered):
    compiled = None

    def call(*args, **kwargs):
        nonlocal compiled
        if compiled is None:
            compiled = lowered.compile()
        return compiled(*args, **kwargs)

    return call


def _from_exported(exported) -> Source:
    code = exported.mlir_module()
    names = [f"args[{i}]" for i in range(len(exported.in_avals))]
    return Source(
        **_text_fields(code),
        kept=exported.module_kept_var_idx,
        input_names=names,
        output_names=[f"result[{i}]" for i in range(len(exported.out_avals))],
        in_tree=exported.in_tree,
        out_tree=exported.out_tree,
        call=jax.jit(exported.call),
    )


def _from_text(program) -> Source:
    code = program.encode() if isinstance(program, str) else program
    return Source(code, "<program>", [], [])


def _text_fields(code):
    code = code.encode() if isinstance(code, str) else code
    return {"code": code, "name": "<exported>", "free_parameters": [], "free_results": []}


def _module_fields(module):
    main = ir.SymbolTable(module.operation)["main"]
    return {
        "code": module.operation.get_asm(enable_debug_info=True).encode(),
        "name": ir.StringAttr(module.operation.attributes["sym_name"]).value,
        "free_parameters": _unannotated(main, "arg_attrs", len(main.type.inputs)),
        "free_results": _unannotated(main, "res_attrs", len(main.type.results)),
    }


def _unannotated(main, kind, number):
    """Whether JAX left the sharding of each argument or result to the compiler."""
    if kind not in main.attributes:
        return [True] * number
    entries = [ir.DictAttr(d) for d in ir.ArrayAttr(main.attributes[kind])]
    return [not ("sdy.sharding" in d or "mhlo.sharding" in d) for d in entries]


def _mesh_of(arguments, shardings):
    leaves = tree_flatten(arguments)[0]
    for sharding in [getattr(x, "sharding", None) for x in leaves] + list(shardings):
        if isinstance(sharding, NamedSharding) and sharding.mesh.size > 1:
            return sharding.mesh
    return None
