"""gspmd: SPMD partitioning of JAX programs, outside of XLA."""

from gspmd import testing
from gspmd._collectives import Collective, Collectives
from gspmd._core import Error
from gspmd._core import version as __version__
from gspmd._drawing import Drawing, draw
from gspmd._dropin import install, last_report, uninstall, use
from gspmd._partition import MemoryAnalysis, Partitioned, partition
from gspmd._split import mesh_split, pipeline

__all__ = [
    "Collective",
    "Collectives",
    "Drawing",
    "Error",
    "MemoryAnalysis",
    "Partitioned",
    "__version__",
    "draw",
    "install",
    "last_report",
    "mesh_split",
    "partition",
    "pipeline",
    "testing",
    "uninstall",
    "use",
]
