#!/usr/bin/env bash
# Builds and runs all tests: ./test.sh [PRESET] (default: release). Installs what is missing.
# The last line is "N passed, N failed", with ", N skipped" where some were; exit code 1 if any failed.
set -euo pipefail
cd "$(dirname "$0")"
preset=${1:-release}

tools/install_packages test
python=$(tools/test_python)
build=build/$preset
mkdir -p "$build"

# The extension module of a sanitized build does not load into a plain Python.
with_python=ON
case "$preset" in asan | tsan) with_python=OFF ;; esac

echo "Building ($preset); the log is $build/build.log"
if ! { cmake --preset "$preset" -DGSPMD_BUILD_TESTS=ON -DGSPMD_TEST_PYTHON="$python" \
         -DGSPMD_BUILD_PYTHON=$with_python &&
       cmake --build --preset "$preset"; } > "$build/build.log" 2>&1; then
  grep -E -A6 'error|FAILED' "$build/build.log" | head -60 || tail -30 "$build/build.log"
  echo "the build failed"
  echo "0 passed, 1 failed"
  exit 1
fi

rm -rf "$build/test-results"
mkdir -p "$build/test-results"
ctest --preset "$preset" --output-junit "$PWD/$build/test-results/ctest.xml" || true
"$python" tools/count_results.py "$build/test-results"
