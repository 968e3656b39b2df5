"""How much memory this process may still take, under the limits of machine, container and batch system."""

from __future__ import annotations

import math
import os
import resource

# Files of Linux control groups (version 2, then version 1): folder, limit, usage, and the part of the usage
# that can be reclaimed.
_CONTROL_GROUPS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", b"inactive_file"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", b"total_inactive_file"),
)


def free() -> float:
    """Bytes that this process may still take: the least that machine, container and process limits leave."""
    return min(_machine_free(), _container_free(), _process_limit())


def shown(size: float) -> str:
    """Write a number of bytes with three digits and a unit."""
    for unit in ("bytes", "kB", "MB", "GB", "TB", "PB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} EB"


def _machine_free() -> float:
    try:
        with open("/proc/meminfo", "rb") as file:
            for line in file:
                if line.startswith(b"MemAvailable:"):
                    return 1024.0 * int(line.split()[1])
    except (OSError, ValueError, IndexError):  # no such file, or not in this form: not Linux
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (OSError, ValueError, AttributeError):
        return math.inf


def _container_free() -> float:
    """Memory that the control group of a container leaves: limit − (usage − reclaimable)."""
    for folder, limit, used, cache in _CONTROL_GROUPS:
        try:
            with open(f"{folder}/{limit}", "rb") as file:
                most = file.read().strip()
            if most == b"max":
                return math.inf
            with open(f"{folder}/{used}", "rb") as file:
                taken = int(file.read())
            with open(f"{folder}/memory.stat", "rb") as file:
                given_back = sum(int(line.split()[1]) for line in file if line.split()[0] == cache)
            return float(max(int(most) - taken + given_back, 0))
        except (OSError, ValueError, IndexError):
            continue
    return math.inf


def _process_limit() -> float:
    """Address space left to this process (RLIMIT_AS, which batch systems set), less what it uses."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return math.inf
    try:
        with open("/proc/self/statm", "rb") as file:
            taken = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        taken = 0
    return float(max(limit - taken, 0))
