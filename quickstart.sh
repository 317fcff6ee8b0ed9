#!/usr/bin/env bash
# Installs what is needed, builds a release, and shows the whole way on a real program: a Llama-like
# training step for 8 devices (examples/llama_train.py made it).
set -euo pipefail
cd "$(dirname "$0")"

tools/install_packages build
build=build/release
mkdir -p "$build"
echo "Building a release; the log is $build/build.log"
if ! { cmake --preset release -DGSPMD_BUILD_TESTS=OFF -DGSPMD_BUILD_BENCH=OFF &&
       cmake --build --preset release --target gspmd_cli; } > "$build/build.log" 2>&1; then
  tail -30 "$build/build.log"
  exit 1
fi

gspmd=$build/gspmd
program=examples/llama_train_8.hlo
out=$build/llama_train_8.spmd.hlo

echo
echo "== Completed shardings: parameters and the largest values (gspmd propagate --summary)"
"$gspmd" propagate "$program" --summary 10
echo
echo "== The per-device program: $out (gspmd partition)"
"$gspmd" partition "$program" -o "$out" --time
"$gspmd" stats "$out"
echo
echo "== Why each collective is there (gspmd explain)"
"$gspmd" explain "$program" --most 20
echo
echo "== The same on 8 virtual devices as on one? (gspmd check)"
"$gspmd" check "$program"
