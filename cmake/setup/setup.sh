# ./run sources this script, which installs the packages that are missing, and no others. The script needs no input, and takes a moment where
# no package is missing.

setup_dir="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

# With the seconds since the command began, so that whoever reads what it printed sees where its time went.
say() { printf '== %d s: %s\n' "$SECONDS" "$*"; }
fail() { printf 'run: %s\n' "$*" >&2; exit 1; }

# The lines of a list file without comments.
lines_of() { sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$1"; }

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  else
    command -v sudo > /dev/null || fail "not root and no sudo: run as root: $*"
    sudo "$@"
  fi
}

# --- Debian packages

# missing_packages NEED...: each once, also where several of these need it.
missing_packages() {
  local installed need package command
  installed=" $(lines_of "$setup_dir/debian_packages.txt" | awk '{ print $2 }' |
    xargs dpkg-query -W -f '${db:Status-Status}:${Package} ' 2> /dev/null || true) "
  while read -r need package command; do
    [[ " $* " == *" $need "* ]] || continue
    [[ "$installed" == *" installed:$package "* ]] && continue
    [ -n "$command" ] && command -v "$command" > /dev/null && continue
    echo "$package"
  done < <(lines_of "$setup_dir/debian_packages.txt") | awk '!seen[$0]++'
}

# Another Debian, or Ubuntu, has some of them under another name or in a version that nobody tried.
is_debian_12() { [[ "$(cat /etc/os-release 2> /dev/null)" == *CODENAME=bookworm* ]]; }

# On another system it only names them: whether they are there under other names CMake finds out.
install_packages() {
  [ $# -gt 0 ] || return 0
  if ! is_debian_12 || ! command -v apt-get > /dev/null; then
    say "this system is not Debian 12, so nothing is installed. Needed, unless it is here under another name: $*"
    return 0
  fi
  say "installing Debian packages: $*"
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
  as_root "${apt[@]}" update < /dev/null || say "apt-get update failed; going on with the lists that are there"
  as_root "${apt[@]}" install -y --no-install-recommends "$@" < /dev/null ||
    fail "could not install: $* (see above; is a package source reachable?)"
}

check_tools() {
  local tool
  for tool in g++ cmake git python3; do
    command -v "$tool" > /dev/null || fail "$tool is missing; Troupe needs g++ 12, CMake 3.24, git and Python 3"
  done
}

# Has sudo ask for a password now, where the packages of these needs are to be installed later, in the background.
ask_for_root() {
  [ "$(id -u)" -eq 0 ] || ! command -v sudo > /dev/null || ! is_debian_12 || [ -z "$(missing_packages "$@")" ] || sudo true
}

setup_packages() {
  local missing
  mapfile -t missing < <(missing_packages "$@")
  install_packages "${missing[@]}"
}

# --- Wheels of LibTorch, the CUDA runtime and NCCL, in a virtual environment that all clones share

has_gpu() {
  compgen -G '/proc/driver/nvidia/gpus/*' > /dev/null || compgen -G '/dev/nvidia[0-9]*' > /dev/null ||
    { command -v nvidia-smi > /dev/null && nvidia-smi -L > /dev/null 2>&1; }
}

# cmake/TroupeWheels.cmake finds it by the same rule.
venv_path() {
  local hash suffix=""
  hash="$(sha256sum "$setup_dir/wheels.txt" | cut -c 1-12)"
  if has_gpu; then suffix=-gpu; fi
  echo "${XDG_CACHE_HOME:-$HOME/.cache}/troupe/venv-$hash$suffix"
}

pins() {
  lines_of "$setup_dir/wheels.txt" | grep -v '^gpu '
  if has_gpu; then lines_of "$setup_dir/wheels.txt" | sed -n 's/^gpu //p'; fi
}

# True where the user has all that the wheels would bring: LibTorch in CMAKE_PREFIX_PATH, and the CUDA runtime and NCCL
# there or in an installed toolkit.
has_own_libraries() {
  local prefix torch="" cudart="" nccl=""
  IFS=: read -ra prefixes <<< "${CMAKE_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}"; do
    [ -e "$prefix/lib/libtorch_cpu.so" ] && torch=1
  done
  for prefix in "${prefixes[@]}" "${CUDA_HOME:-/usr/local/cuda}"; do
    [ -e "$prefix/include/cuda_runtime_api.h" ] && cudart=1
    [ -e "$prefix/include/nccl.h" ] && nccl=1
  done
  [ -n "$torch" ] && [ -n "$cudart" ] && [ -n "$nccl" ]
}

# The first Python that the wheels exist for and that can make a virtual environment.
find_python() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -c 'import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))' \
      > /dev/null 2>&1 && { echo "$python"; return 0; }
  done
  return 1
}

# pip_install VENV PIN...
pip_install() {
  local venv="$1"
  shift
  "$venv/bin/python" -m pip install --no-deps --no-compile --no-cache-dir --no-input --progress-bar off \
    --disable-pip-version-check "$@" < /dev/null
}

make_venv() {
  local target="$1" python partial
  python="$(find_python)" || { install_packages python3-venv && python="$(find_python)"; } ||
    fail "no Python between 3.10 and 3.14 with the venv module; install python3-venv, or name a LibTorch and a CUDA toolkit with NCCL in CMAKE_PREFIX_PATH"
  say "installing wheels into $target, up to $(has_gpu && echo 5.4 || echo 1.5) GB:" $(pins)
  # Made elsewhere and renamed, so that one that was cut off is never taken for a whole one.
  partial="$target.partial.$$"
  "$python" -m venv "$partial"
  pip_install "$partial" $(pins) || { rm -rf "$partial"; fail "pip could not install the wheels (see above; is a package index reachable?)"; }
  mv "$partial" "$target"
}

setup_wheels() {
  local target
  if has_own_libraries; then return 0; fi
  target="$(venv_path)"
  [ -d "$target" ] && return 0
  mkdir -p "$(dirname "$target")"
  (
    flock 9  # another clone may be at it
    rm -rf "$(dirname "$target")"/venv-*.partial.*
    [ -d "$target" ] || make_venv "$target"
  ) 9> "$(dirname "$target")/setup.lock"
}

# --- Python packages that tests ask, in others: one for each list cmake/setup/<name>.txt

# cmake/TroupeTests.cmake finds it by the same rule.
packages_path() {
  echo "${XDG_CACHE_HOME:-$HOME/.cache}/troupe/$1-$(sha256sum "$setup_dir/$1.txt" | cut -c 1-12)"
}

# install_list NAME SIZE: the packages of cmake/setup/NAME.txt. Fails, and says why, where they cannot be installed.
install_list() {
  local name="$1" size="$2" target python
  target="$(packages_path "$name")"
  [ -d "$target" ] && return 0
  mkdir -p "$(dirname "$target")"
  (
    flock 9  # another clone may be at it
    rm -rf "$(dirname "$target")/$name"-????????????.partial.*
    [ -d "$target" ] && exit 0
    python="$(find_python)" || { say "no Python between 3.10 and 3.14 with the venv module for $name"; exit 1; }
    say "installing the packages of $name for tests into $target, $size:" $(lines_of "$setup_dir/$name.txt")
    "$python" -m venv "$target.partial.$$" && pip_install "$target.partial.$$" $(lines_of "$setup_dir/$name.txt") &&
      mv "$target.partial.$$" "$target" && exit 0
    rm -rf "$target.partial.$$"
    say "pip could not install them (see above; is a package index reachable?)"
    exit 1
  ) 9> "$(dirname "$target")/$name.lock"
}

# Tests are skipped without them, so that a machine without a package index runs the others.
setup_readers() {
  install_list readers "100 MB" || say "the tests that ask the readers are skipped"
  install_list python "20 MB" || say "the tests of the Python package are skipped"
}

# What only running the tests needs, and building them does not.
setup_for_tests() {
  setup_packages test
  setup_readers
}

# setup_for NEED...: the packages of those needs (build, bench, test, lint), and the wheels.
setup_for() {
  setup_packages "$@"
  check_tools
  setup_wheels
  if [[ " $* " == *" test "* ]]; then setup_readers; fi
}
