"""What is being measured on."""
import datetime
import os
import platform
import re
import subprocess
import time

from runners import ROOT

UNITS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "avx_vnni", "amx_tile", "amx_bf16", "amx_int8", "asimd", "sve")


def _first(path, pattern, otherwise=""):
    try:
        with open(path) as f:
            found = re.search(pattern, f.read(), re.M)
        return found[1].strip() if found else otherwise
    except OSError:
        return otherwise


def flags():
    return set(_first("/proc/cpuinfo", r"^(?:flags|Features)\s*:(.*)$").split())


ZEN4 = (*range(0x10, 0x20), *range(0x60, 0x80), *range(0xA0, 0xB0))  # models of family 25; the others are Zen 3
INTEL = {85: "Skylake", 106: "Ice Lake", 108: "Ice Lake", 143: "Sapphire Rapids", 207: "Emerald Rapids", 173: "Granite Rapids"}


def core(vendor, family, model, units):
    """The microarchitecture of a server processor, as far as this table knows it."""
    if vendor == "AuthenticAMD":
        return {23: "Zen 2", 25: "Zen 4" if model in ZEN4 else "Zen 3", 26: "Zen 5"}.get(family, "")
    if vendor == "GenuineIntel" and family == 6:
        if model == 85 and "avx512_vnni" in units:
            return "Cooper Lake" if "avx512_bf16" in units else "Cascade Lake"
        return INTEL.get(model) or ("AMX" if "amx_tile" in units else "")  # a hypervisor may give the model of a desktop's processor
    return ""


def processor(name, vendor, family, model, units):
    """What a record is called by: the brand, the microarchitecture, and AVX2 where AVX-512 is there and masked."""
    words = re.sub(r"\((?:R|TM|C)\)|@.*|\b(?:Processor|CPU|\d+-Core)\b", " ", name).split()
    of = core(vendor, family, model, units)
    if not of:
        return " ".join(words)
    masked = of not in ("Zen 2", "Zen 3") and "avx512f" not in units
    return "%s (%s%s)" % (" ".join(w for w in words if not re.search(r"\d", w)), of, ", AVX2" if masked else "")


class Others:
    """How busy other programs keep the cores, seen while every runner of ours is blocked."""

    def __init__(self):
        self.busy = self.total = 0

    @staticmethod
    def _ticks():
        try:
            with open("/proc/stat") as f:
                t = [int(v) for v in f.readline().split()[1:9]]
        except OSError:
            return 0, 0
        return sum(t) - t[3] - t[4], sum(t)  # without idle and iowait

    def pause(self, seconds):
        """Sleeps, looking: the first part is left to threads of ours that still spin."""
        time.sleep(seconds / 2)
        busy, total = self._ticks()
        time.sleep(seconds / 2)
        after = self._ticks()
        self.busy += after[0] - busy
        self.total += after[1] - total

    def share(self):
        return self.busy / self.total if self.total else 0.0


def _git(*arguments):
    try:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def describe(threads):
    has = flags()
    name = _first("/proc/cpuinfo", r"^model name\s*:(.*)$", platform.machine())
    vendor, family, model = (_first("/proc/cpuinfo", r"^%s\s*:(.*)$" % k) for k in ("vendor_id", "cpu family", "model"))
    return {
        "cpu": processor(name, vendor, int(family or 0), int(model or 0), has),
        "model_name": name,
        "cpu_family_model": "%s/%s" % (family, model),
        "units": [u for u in UNITS if u in has],
        "cores": len(os.sched_getaffinity(0)),
        "threads": threads,
        "memory_GB": round(int(_first("/proc/meminfo", r"^MemTotal:\s*(\d+)", "0")) / 1e6, 1),
        "huge_pages": _first("/sys/kernel/mm/transparent_hugepage/enabled", r"\[(\w+)\]"),
        "system": platform.system() + " " + platform.release().split("-")[0],
        "compiler": _first_line(["cc", "--version"]),
        "commit": _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--porcelain", "--", "lightcone", "bench/runner") else ""),
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _first_line(argv):
    try:
        return subprocess.run(argv, capture_output=True, text=True).stdout.splitlines()[0]
    except (OSError, IndexError):
        return "none"
