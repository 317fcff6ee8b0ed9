"""A small transformer over 2 processes x 4 devices, which `jax.distributed` connects.

Started without arguments it is the launcher: it starts two processes of itself on this machine. On
a cluster start the same main() on every host, with that cluster's coordinator.

After `pip install .`:
    python examples/jax/two_processes.py
Both processes say that their loss equals that of one device.
"""

import os
import socket
import subprocess
import sys

PROCESSES, DEVICES, STEPS = 2, 4, 3


def launch():
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        address = f"localhost:{probe.getsockname()[1]}"
    command = [sys.executable, __file__, address]
    children = [subprocess.Popen([*command, str(k)]) for k in range(PROCESSES)]
    return max(child.wait() for child in children)


def main(address, number):
    os.environ["XLA_FLAGS"] = f"--xla_force_host_platform_device_count={DEVICES}"
    os.environ["JAX_CPU_COLLECTIVES_IMPLEMENTATION"] = "gloo"
    import jax
    import numpy as np

    jax.distributed.initialize(address, PROCESSES, number)
    import common
    import transformer
    from jax.sharding import NamedSharding

    import gspmd

    mesh = common.mesh(data=2, model=4)
    specs = {
        "qkv": common.P(None, None, "model"),
        "out": common.P(),
        "up": common.P(None, None, "model"),
        "down": common.P(),
    }

    def place(x, spec):
        """Every process has all of x and gives its own devices their blocks."""
        x = np.asarray(x)
        sharding = NamedSharding(mesh, spec)
        return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])

    step = jax.jit(common.sgd_step(transformer.loss, 0.05))
    alone = transformer.init(jax.random.key(0))
    batch = tuple(np.asarray(jax.random.normal(jax.random.key(1), (2, 8, 16, transformer.WIDTH))))
    params = jax.tree.map(place, alone, specs)
    shards = jax.tree.map(lambda x: place(x, common.P("data")), batch)
    for _ in range(STEPS):
        alone, expected = step(alone, batch)
        with gspmd.use():
            params, loss = step(params, shards)
        np.testing.assert_allclose(float(loss), float(expected), rtol=1e-4)
    print(f"process {number}: equal to one device, loss {float(loss):.6f}", flush=True)
    jax.distributed.shutdown()


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit(launch())
    main(sys.argv[1], int(sys.argv[2]))
