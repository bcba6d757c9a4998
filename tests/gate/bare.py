#!/usr/bin/env python3
"""Tries the commit that is HEAD as a newcomer does: on a bare Debian, in a fresh clone, with an empty home.

  (nothing)   ./run demo, and then ./run test
  COMMANDS    these commands of ./run instead, each a word or a text of several: "demo" "test asan"

The bare Debian is a folder that debootstrap makes: the smallest system with git, of the release of this machine, with the
package sources, the certificates and the settings of pip of this machine. Commands run in it by chroot, with mounts and
process ids of their own, so that nothing they start outlives them. It needs root and is removed at the end, unless it is
kept (--keep) to be looked at.

Prints what time and disk each command took, with all that it installed. The time of what is downloaded is the network's.
"""

import argparse
import contextlib
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gate import ENDING, ROOT, end_by_signal, git, remove

NEEDED_GB = 16
HOME = "root/troupe"
# How this machine reaches package sources and package indexes, of which the bare one must know.
OF_NETWORK = re.compile(r"(?i)(?:https?|ftp|all|no)_proxy|PIP_\w+|(?:\w+_)?SSL_\w+|\w+_(?:CERT|CA_BUNDLE)")
FILES_OF_NETWORK = "etc/apt", "etc/pip.conf", "etc/resolv.conf", "etc/hosts", "etc/ssl/certs/ca-certificates.crt"
# $0: the bare system. The shell that is process 1 stays, to reap what is left to it.
ENTER = """
mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev" || exit 1
chroot "$0" "$@"
"""


def package_source():
    """-> the release of this machine, and the first address that apt takes its packages from"""
    release = platform.freedesktop_os_release()["VERSION_CODENAME"]
    form = "$(SITE) $(RELEASE)"
    targets = subprocess.run(["apt-get", "indextargets", "--format", form, "Created-By: Packages"], check=True,
                             capture_output=True, text=True).stdout.splitlines()
    return release, next(site for site, name in map(str.split, targets) if name == release)


def make_system(root):
    root.chmod(0o755)  # it is "/" there, through which every user goes
    release, site = package_source()
    subprocess.run(["debootstrap", "--variant=minbase", "--include=git,ca-certificates", release, root, site], check=True,
                   stdout=subprocess.DEVNULL)
    for name in FILES_OF_NETWORK:
        source, target = Path("/", name), root / name
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        elif source.exists():
            shutil.copy(source, target)
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", ROOT, root / HOME], check=True)


def environment_inside():
    of_network = {name: value for name, value in os.environ.items() if OF_NETWORK.fullmatch(name)}
    return of_network | {"HOME": "/root", "LANG": "C.UTF-8", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


def entering(root, *inside):
    """-> the words of a command that runs `inside` in the bare system"""
    return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, str(root), *inside]


def run(root, words):
    """-> the exit code of ./run in the bare system"""
    inside = ["sh", "-c", 'cd "$0" && ./run "$@"', f"/{HOME}", *words]
    with subprocess.Popen(entering(root, *inside), stdin=subprocess.DEVNULL, env=environment_inside()) as child:
        try:
            return child.wait()
        except BaseException:
            child.kill()
            raise


def gigabytes(root):
    """-> the disk that the bare system takes"""
    words = subprocess.run(["du", "--summarize", "--one-file-system", "--block-size=1M", root], check=True, capture_output=True, text=True)
    return int(words.stdout.split()[0]) / 1024


def tell_of(root):
    settings = [f"{name}={value}" for name, value in environment_inside().items()]
    print(f"== bare: the system stays in {root} until you remove it; enter it by\n"
          f"  {shlex.join(['env', '-i', *settings, *entering(root, 'bash')])}")


@contextlib.contextmanager
def bare_system(is_kept):
    root = Path(tempfile.mkdtemp(prefix="troupe-bare-"))
    try:
        make_system(root)
        yield root
    finally:
        tell_of(root) if is_kept else remove(root)


def main():
    parser = argparse.ArgumentParser(usage="./run bare [--keep] [COMMAND...]", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*", default=["demo", "test"])
    parser.add_argument("--keep", action="store_true", help="leave the system where it is at the end, and print how to enter it")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("bare: chroot and mounts need root; run it as root")
    for number in ENDING:
        signal.signal(number, end_by_signal)
    free = shutil.disk_usage(tempfile.gettempdir()).free // 2**30
    if free < NEEDED_GB:
        sys.exit(f"bare: {NEEDED_GB} GB of disk are needed, and {free} are free; name another folder in TMPDIR")

    summary, passed = [], True
    print(f"bare: {git('rev-parse', 'HEAD')}; making the system", flush=True)
    with bare_system(options.keep) as root:
        for command in options.commands:
            started, before = time.monotonic(), gigabytes(root)
            code = run(root, command.split())
            passed, seconds = passed and code == 0, time.monotonic() - started
            summary.append(f"  ./run {command:30} {'passed' if code == 0 else 'FAILED'} {seconds:6.0f} s {gigabytes(root) - before:5.1f} GB")
    print(f"== bare: {'passed' if passed else 'FAILED'}, on {len(os.sched_getaffinity(0))} cores")
    print("\n".join(summary))
    return 0 if passed else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("bare: interrupted")
