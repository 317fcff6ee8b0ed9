"""The extension module: programs in, per-device programs and reports out."""

from typing import TypedDict

version: str

class Error(ValueError): ...

class Layout(TypedDict):
    dims: list[int]
    axes: list[list[str]]
    hlo: str
    sdy: str

class CustomCall(TypedDict):
    backend_config: bytes
    mesh: str
    operands: list[Layout]
    results: list[Layout]

class Partitioned:
    @property
    def input_axes(self) -> list[list[list[str]]]: ...
    @property
    def output_axes(self) -> list[list[list[str]]]: ...
    @property
    def input_shardings(self) -> list[str]: ...
    @property
    def output_shardings(self) -> list[str]: ...
    @property
    def num_partitions(self) -> int: ...
    @property
    def warnings(self) -> list[str]: ...
    def text(self, format: str = ..., metadata: bool = ..., shardings: bool = ...) -> str: ...
    def stablehlo_with_global_interface(self) -> str: ...
    def stats_json(self) -> str: ...
    def explanations_json(self) -> str: ...
    def check(self, seed: int) -> tuple[bool, str]: ...
    def memory(self) -> list[int]: ...
    def transcendentals(self) -> float: ...

def partition(
    program: bytes,
    name: str,
    num_partitions: int,
    free_parameters: list[bool],
    free_results: list[bool],
) -> Partitioned: ...
def custom_calls(
    program: bytes,
    num_partitions: int,
    free_parameters: list[bool],
    free_results: list[bool],
    target: str,
) -> list[CustomCall]: ...
