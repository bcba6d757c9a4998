#!/usr/bin/env bash
# demo_test.sh TREE BUILD FOLDER [sweep | pbt]: runs the demo where only the programs lie that `run_demo --programs` names, since
# `./run demo` builds no others.
set -euo pipefail
tree="$1" build="$2" folder="$3" demo="$4"
programs="$("$tree/examples/run_demo" --programs "$demo")"
rm -rf "$folder"
for place in cli examples; do
  mkdir -p "$folder/$place"
  for program in $programs; do
    [ ! -x "$build/$place/$program" ] || ln -s "$build/$place/$program" "$folder/$place/"
  done
done
# In place of this shell: a signal reaches the demo.
exec "$tree/examples/run_demo" "$folder" "$demo"
