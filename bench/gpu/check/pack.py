"""Packs what a machine with a GPU needs into one file that Python runs there (a zip application)."""
import datetime
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile

PROGRAMS = ["primitives_test", "products_test", "warpgroup_products_test", "gpu_attention_test", "types_test", "columns_test",
            "models_test", "random_graphs_test", "lightcone_gpu_bench"]
LIBRARIES = ["libfake_cuda.so", "libfake_nccl.so"]
# The tests' own files, and the model that is measured.
FOLDERS = ["models/story", "simulators/cuda/shim"]
# What every Linux has. Others that a program links travel with it.
SYSTEM = {"linux-vdso.so.1", "libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libpthread.so.0", "libdl.so.2"}
MOST = 25_000_000
HERE = pathlib.Path(__file__).resolve().parent


def output_of(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout


def linked(program):
    """Name -> file of the libraries that a bare system may lack."""
    found = {}
    for line in output_of("ldd", program).splitlines():
        words = line.split()
        if len(words) > 2 and words[1] == "=>" and words[0] not in SYSTEM:
            found[words[0]] = os.path.realpath(words[2])
    return found


def newest_symbols(files):
    """The newest versions of glibc and libstdc++ that the programs ask for."""
    newest = {}
    for f in files:
        for name, version in re.findall(r"(GLIBC|GLIBCXX)_([0-9.]+)", output_of("objdump", "-T", f)):
            key = tuple(map(int, version.split(".")))
            newest[name] = max(newest.get(name, key), key)
    return {name: ".".join(map(str, v)) for name, v in newest.items()}


def commit(root):
    done = subprocess.run(["git", "-C", str(root), "describe", "--always", "--dirty"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def collect(root, build, folder):
    """The files below `folder`, stripped; gives the manifest."""
    (folder / "bin").mkdir()
    (folder / "lib").mkdir()
    files = {build / "bin" / p: folder / "bin" / p for p in PROGRAMS}
    files.update({build / "lib" / l: folder / "lib" / l for l in LIBRARIES})
    for program in PROGRAMS:
        for name, file in linked(build / "bin" / program).items():
            files[pathlib.Path(file)] = folder / "lib" / name
    for source, to in files.items():
        subprocess.run(["strip", "--strip-unneeded", "-o", str(to), str(source)], check=True)
    for name in FOLDERS:
        for source in sorted((root / name).iterdir()):
            if source.is_file():
                to = folder / name / source.name
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_bytes(source.read_bytes())
    listed = {str(f.relative_to(folder)): hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(folder.rglob("*")) if f.is_file()}
    return {"commit": commit(root), "packed": datetime.datetime.now().isoformat(timespec="seconds"),
            "needs": newest_symbols(build / "bin" / p for p in PROGRAMS), "files": listed}


def pack(root, build, file, first_build):
    if first_build:
        if not (build / "build.ninja").exists():
            subprocess.run(["cmake", "--preset", "release"], cwd=root, check=True)
        subprocess.run(["cmake", "--build", str(build), "--parallel", str(os.cpu_count()), "--target", *PROGRAMS, "fake_cuda", "fake_nccl"], check=True)
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        manifest = collect(root, build, folder)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:xz", preset=6) as tar:
            tar.add(folder, ".")
    file.parent.mkdir(parents=True, exist_ok=True)
    half = file.with_suffix(".half")
    with zipfile.ZipFile(half, "w", zipfile.ZIP_DEFLATED) as z:
        z.write(HERE / "contact.py", "__main__.py")
        for module in ("stages.py", "peers.py"):
            z.write(HERE / module, module)
        z.writestr("manifest.json", json.dumps(manifest, indent=1))
        z.writestr(zipfile.ZipInfo("files.tar.xz"), packed.getvalue())  # stored: it is packed already
    size = half.stat().st_size
    if size > MOST:
        half.unlink()
        sys.exit("%d bytes are more than the %d that may travel" % (size, MOST))
    os.replace(half, file)
    print("%s: %.1f MB, %s; there: python3 %s --help" % (file, size / 1e6, manifest["commit"] or "no commit", file.name))
