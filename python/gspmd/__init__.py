"""gspmd: SPMD partitioning of JAX programs, outside of XLA."""

from gspmd._core import Error
from gspmd._core import version as __version__
from gspmd._dropin import install, last_report, uninstall, use

__all__ = ["Error", "__version__", "install", "last_report", "uninstall", "use"]
