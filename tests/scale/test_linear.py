"""Time grows with the program, not with its square, and not with the number of devices."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))
import devices
import million


def microseconds_each(size):
    """Of an instruction: the best of three runs, printing and reading included."""
    return min(
        1e3 * ms["total"] / count for ms, count, _ in (million.measure(size) for _ in range(3))
    )


def test_time_is_linear():
    # Caches alone make it 1.4. A quadratic step that takes a tenth of the time at 10,000
    # instructions makes it 2.5.
    small, large = microseconds_each(10_000), microseconds_each(160_000)
    assert large < 2.5 * small


def test_devices_do_not_matter(tmp_path):
    rows = devices.measure(str(tmp_path), reps=7, instructions=False)
    for name, limit in (("ms", 1.5), ("peak MB", 1.05)):
        values = [row[name] for row in rows.values()]
        assert max(values) <= limit * min(values), rows
