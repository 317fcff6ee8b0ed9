"""Every test here runs on 8 host devices; XLA reads the flag when it is loaded."""

import os

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
