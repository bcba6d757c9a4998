#!/usr/bin/env bash
# Runs the tests of each group of frameworks with the environment of its list, cmake/setup/frameworks_<group>.txt. A group whose
# packages cannot be installed is skipped, and says so.
#
# usage: run_groups.sh PROGRAM [GROUP...]      groups: plain, torch, trainers, tensorflow, jax; all if none is named
set -euo pipefail
tree="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
source "$tree/cmake/setup/setup.sh"

declare -A sizes=([torch]="3.9 GB" [trainers]="0.5 GB" [tensorflow]="1.7 GB" [jax]="0.7 GB")
results=()
failed=0

run_group() {
  local group="$1" python=python3 also=""
  if [ "$group" = trainers ]; then
    install_list frameworks_torch "${sizes[torch]}" || return 2
    also=":$(echo "$(packages_path frameworks_torch)"/lib/python3*/site-packages)"
  fi
  if [ "$group" != plain ]; then
    install_list "frameworks_$group" "${sizes[$group]}" || return 2
    python="$(packages_path "frameworks_$group")/bin/python"
  fi
  local path="$tree/python:$tree/tests/frameworks:$tree/tests/support$also"
  TROUPE_BINARY="$program" PYTHONPATH="$path" "$python" -m unittest -v "${group}_test" < /dev/null
}

program="$(realpath "${1:?the program troupe}")"
shift
[ $# -gt 0 ] || set -- plain torch trainers tensorflow jax
# In a cluster of their own, or in none.
unset TROUPE_ADDRESS TROUPE_TOKEN
for group in "$@"; do
  [ "$group" = plain ] || [ -n "${sizes[$group]:-}" ] || fail "no such group of frameworks: $group; there are plain, torch, trainers, tensorflow and jax"
  say "tests: frameworks: $group"
  started=$SECONDS status=0
  (run_group "$group") || status=$?
  case $status in
    0) result=passed ;;
    2) result="skipped: its packages could not be installed (see above)" ;;
    *) result=FAILED; failed=1 ;;
  esac
  results+=("$(printf '%-10s %4d s  %s' "$group" $((SECONDS - started)) "$result")")
done
say "tests: summary of frameworks"
printf '  %s\n' "${results[@]}"
exit $failed
