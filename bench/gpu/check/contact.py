"""Runs what bench/gpu_check packed, on a machine with an NVIDIA GPU: stages in the order of what they tell a second, each a group
of processes with a limit of its own.

  python3 gpu_check.pyz                      everything, within 7 minutes
  python3 gpu_check.pyz --budget 200         what 200 seconds have room for
  python3 gpu_check.pyz --only torch,values  stages whose names begin so        --list: the names

gpu_check.json in --output (the current folder) is whole after every row, gpu_check.log has everything that was printed.
$LIGHTCONE_CUDA_DRIVER, $LIGHTCONE_NVRTC, $LIGHTCONE_CUBLASLT and $LIGHTCONE_NCCL name libraries that are not where they are looked for."""
import argparse
import glob
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

LEAST = 6  # seconds that a stage is begun with


class Contact:
    """One check: where its files are, what was found of the machine, and the record."""

    def __init__(self, place, output, budget, manifest):
        self.begin, self.budget, self.place, self.output = time.monotonic(), budget, place, output
        self.record = {"schema": 2, "date": time.strftime("%Y-%m-%dT%H:%M:%S"), "commit": manifest.get("commit", ""), "stages": []}
        output.mkdir(parents=True, exist_ok=True)
        self.log = open(output / "gpu_check.log", "w")
        self.env = dict(os.environ)

    def left(self):
        return self.budget - (time.monotonic() - self.begin)

    def flush(self):
        self.record["elapsed_s"] = round(time.monotonic() - self.begin, 1)
        half = self.output / "gpu_check.half"
        half.write_text(json.dumps(self.record, indent=1) + "\n")
        os.replace(half, self.output / "gpu_check.json")

    def run(self, stage):
        """One stage; its lines of JSON are in the record as they come. False: the GPU's driver does not let go of it."""
        said = {"stage": stage.name, "state": "running", "rows": []}
        self.record["stages"].append(said)
        if self.left() < LEAST:
            said["state"] = "no time"
            self.flush()
            return True
        limit, begin = min(stage.limit, self.left() - 2), time.monotonic()
        self.log.write("\n==== %s: %s %s\n" % (stage.name, stage.more, " ".join(map(str, stage.command))))
        with tempfile.TemporaryFile() as printed:
            try:
                child = subprocess.Popen(list(map(str, stage.command)), stdout=printed, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                         env=dict(self.env, **stage.more), cwd=str(self.place), start_new_session=True)
            except OSError as e:
                said["state"] = "not started: %s" % e
                self.flush()
                return True
            text, gone = self.follow(child, printed, said, begin + limit)
        self.log.write(text)
        self.log.flush()
        if said["state"] == "running":
            said["state"] = "ended well" if child.returncode == 0 else "ended with %s" % child.returncode
        said["took_s"] = round(time.monotonic() - begin, 1)
        passed = re.search(r"\[  PASSED  \] (\d+) test", text)
        if passed:
            said["passed"] = int(passed.group(1))
        if said["state"] != "ended well":
            said["tail"] = text.splitlines()[-25:]
        self.flush()
        return gone

    def follow(self, child, printed, said, end):
        """What the stage printed, and whether it is gone. Its rows go into the record on the way."""
        at, text = 0, ""
        while True:
            over = child.poll() is not None
            new = os.pread(printed.fileno(), 1 << 20, at)
            at, text = at + len(new), text + new.decode(errors="replace")
            if new:
                said["rows"] = [r for r in map(row_of, text.splitlines()) if r]
                self.flush()
            if over and not new:
                break
            if not over and time.monotonic() > end:
                said["state"] = "stopped at its limit"
                break
            time.sleep(0.02)
        end_group(child.pid)  # also what a stage that ended has left behind
        gone = True
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            said["stuck"], gone = True, False
        return text, gone


def row_of(line):
    try:
        said = json.loads(line) if line.startswith("{") and line.endswith("}") else None
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def end_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass


# ---- the machine ------------------------------------------------------------------------------------

def library(variable, patterns):
    """A library's file: what the environment names, that of a toolkit, or of Python's packages; else its name, for the loader."""
    if os.environ.get(variable):
        return os.environ[variable]
    folders = ["/usr/local/cuda/lib64", "/usr/local/cuda*/targets/x86_64-linux/lib", "/opt/cuda/lib64"]
    for python in dict.fromkeys([sys.executable, shutil.which("python3") or ""]):
        if python:
            said = subprocess.run([python, "-c", "import sys; print('\\n'.join(sys.path))"], capture_output=True, text=True).stdout
            folders += [p + more for p in said.split("\n") if p for more in ("/nvidia/*/lib", "/nvidia/lib")]
    for pattern in patterns:
        for folder in folders:
            for file in sorted(glob.glob(folder + "/" + pattern)):
                return file
    return patterns[0]


def tools():
    found = {"python": shutil.which("python3") or sys.executable}
    sanitizer = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if os.path.exists(sanitizer):
        found["compute-sanitizer"] = sanitizer
    return found


def prepare(contact, fake):
    place, env = contact.place, contact.env
    env.update(LIGHTCONE_GPU="cuda", LIGHTCONE_MACHINE="default", LIGHTCONE_CACHE="off", LIGHTCONE_TESTS_SOURCE=str(place),
               LIGHTCONE_TESTS_FAKE_CUDA=str(place / "lib/libfake_cuda.so"), FAKE_CUDA_SHIM=str(place / "simulators/cuda/shim"))
    env["LD_LIBRARY_PATH"] = ":".join(p for p in (str(place / "lib"), env.get("LD_LIBRARY_PATH")) if p)
    env.setdefault("LIGHTCONE_CUDA_DRIVER", "libcuda.so.1")
    env["LIGHTCONE_NVRTC"] = library("LIGHTCONE_NVRTC", ["libnvrtc.so.13", "libnvrtc.so.12"])
    env["LIGHTCONE_CUBLASLT"] = library("LIGHTCONE_CUBLASLT", ["libcublasLt.so.13", "libcublasLt.so.12"])
    env["LIGHTCONE_NCCL"] = library("LIGHTCONE_NCCL", ["libnccl.so.2"])
    if fake:
        env["LIGHTCONE_NCCL"] = str(place / "lib/libfake_nccl.so")
        env["LIGHTCONE_CUDA_DRIVER"] = env["LIGHTCONE_NVRTC"] = str(place / "lib/libfake_cuda.so")
        env["LIGHTCONE_CUBLASLT"] = "off"
    contact.record["libraries"] = {k: os.path.basename(env["LIGHTCONE_" + k]) for k in ("CUDA_DRIVER", "NVRTC", "CUBLASLT", "NCCL")}
    contact.record["fake"] = fake


def unpack(archive, place):
    """The files of the archive below `place`, each as the manifest has it."""
    manifest = json.loads(archive.read("manifest.json"))
    with archive.open("files.tar.xz") as packed, tarfile.open(fileobj=packed, mode="r|xz") as tar:
        tar.extractall(str(place))
    for module in ("peers.py",):
        (place / module).write_bytes(archive.read(module))
    for name, digest in manifest["files"].items():
        if hashlib.sha256((place / name).read_bytes()).hexdigest() != digest:
            sys.exit("%s is not what was packed" % name)
    return manifest


# ---- what is said -----------------------------------------------------------------------------------

def told(row):
    parts = ["%-48s" % row["row"]] if "row" in row else []
    parts += ["%s=%s" % (k, "%.4g" % v if isinstance(v, float) else v) for k, v in row.items() if k not in ("row", "took_s")]
    return "    " + "  ".join(parts)


def tell(stage):
    passed = "  %d tests" % stage["passed"] if "passed" in stage else ""
    print("%-30s %-22s %6.1f s%s" % (stage["stage"], stage["state"], stage.get("took_s", 0), passed))
    for row in stage["rows"]:
        if "row" in row:
            print(told(row))
    sys.stdout.flush()


def run_all(contact, all_stages, only):
    """Whether a GPU answered and every stage ended well."""
    for stage in all_stages:
        if only and not stage.name.startswith(tuple(only.split(","))):
            continue
        gone = contact.run(stage)
        said = contact.record["stages"][-1]
        tell(said)
        if not gone:
            print("its driver does not end this process: nothing more can be had of this GPU")
            return False
        if stage.name == "ceilings" and not any("us_a_start" in r for r in said["rows"]):
            print("no GPU answers:\n" + "\n".join(said.get("tail", [])))
            return False
    return all(s["state"] in ("ended well", "no time") for s in contact.record["stages"])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--budget", type=float, default=420, metavar="S", help="seconds in all (420)")
    p.add_argument("--only", default="", metavar="NAMES", help="stages whose names begin so, by commas")
    p.add_argument("--output", default=".", metavar="FOLDER")
    p.add_argument("--fake", action="store_true", help="by the CUDA that runs on the CPU: tries the check, measures nothing")
    p.add_argument("--list", action="store_true")
    o = p.parse_args()
    import stages
    if o.list:
        for s in stages.stages(pathlib.Path("."), {"compute-sanitizer": ""}, o.fake):
            print("%-30s at most %d s" % (s.name, s.limit))
        return
    with tempfile.TemporaryDirectory() as made, zipfile.ZipFile(os.path.dirname(os.path.abspath(__file__))) as archive:
        place = pathlib.Path(made)
        contact = Contact(place, pathlib.Path(o.output).resolve(), o.budget, unpack(archive, place))
        prepare(contact, o.fake)
        good = run_all(contact, stages.stages(place, tools(), o.fake), o.only)
        contact.flush()
    print("%.0f s in all; written: %s" % (contact.record["elapsed_s"], contact.output / "gpu_check.json"))
    sys.exit(not good)


if __name__ == "__main__":
    main()
