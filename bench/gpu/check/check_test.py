"""The file that bench/gpu_check packs runs in an empty folder, on the simulated CUDA. A stage that hangs is stopped after its
limit, and its rows are kept.

  check_test.py ROOT BUILD"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import contact
import record
import stages

FEW = "ceilings,primitives,values,rows gemv,nccl,lost device"  # all of them take a minute


def alive(word):
    """Processes whose command has this word."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if word in (folder / "cmdline").read_text():
                found.append(folder.name)
        except OSError:
            pass
    return found


def limits(folder):
    """A stage that hangs with a child of its own is gone after its limit, its rows stay, and the next stage runs."""
    c = contact.Contact(folder, folder / "out", 60, {"commit": "none"})
    word = "317.%d" % os.getpid()
    hangs = "sleep %s & echo '{\"row\": \"first\", \"us\": 1.5}'; echo 'not {a row}'; sleep %s" % (word, word)
    began = time.monotonic()
    assert c.run(stages.Stage("hangs", ["sh", "-c", hangs], 1))
    assert time.monotonic() - began < 8
    assert c.run(stages.Stage("fails", ["sh", "-c", "echo said; exit 3"], 5))
    assert c.run(stages.Stage("leaves", ["sh", "-c", "sleep %s & exit 0" % word], 5))
    assert c.run(stages.Stage("is not there", ["/nowhere/program"], 5))
    said = json.loads((folder / "out/gpu_check.json").read_text())["stages"]
    assert [s["state"][:14] for s in said] == ["stopped at its", "ended with 3", "ended well", "not started: ["], said
    assert said[0]["rows"] == [{"row": "first", "us": 1.5}] and said[1]["tail"] == ["said"]
    assert not alive(word), "a child lives on"
    c.budget = 0
    assert c.run(stages.Stage("late", ["true"], 5)) and c.record["stages"][-1]["state"] == "no time"


def tables():
    made = {"stages": [{"stage": "ceilings", "rows": [{"row": "ceiling copy", "gbytes_per_s": 4000.0}]},
                       {"stage": "rows add", "rows": [{"row": "add f32", "gbytes_per_s": 3000.0}]},
                       {"stage": "rows story, overlap", "rows": [{"row": "story model", "tokens_per_s": 1.0}]},
                       {"stage": "torch", "rows": [{"row": "add f32", "gbytes_per_s": 1500.0}]}]}
    text = record.table(made)
    assert "75 % of copy" in text and "2.00 of PyTorch" in text and "story" not in text, text


def packed(root, build, folder):
    """One file, run with an environment and in a folder that say nothing of the repository."""
    file = folder / "gpu_check.pyz"
    subprocess.run([sys.executable, str(root / "bench/gpu_check"), "pack", str(file), "--build", str(build), "--no-build"], check=True)
    away = folder / "away"
    away.mkdir()
    bare = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "HOME": str(away)}
    done = subprocess.run([sys.executable, str(file), "--fake", "--only", FEW, "--output", "back"], cwd=away, env=bare)
    said = json.loads((away / "back/gpu_check.json").read_text())
    states = {s["stage"]: s["state"] for s in said["stages"]}
    assert done.returncode == 0 and set(states.values()) == {"ended well"}, (states, [s.get("tail") for s in said["stages"]])
    assert set(FEW.split(",")) == set(states), states
    rows = [r for s in said["stages"] for r in s["rows"] if "row" in r]
    assert len(rows) > 10 and not [r for r in rows if "error" in r], rows
    assert all(s.get("passed", 1) > 0 for s in said["stages"])


with tempfile.TemporaryDirectory() as made:
    limits(pathlib.Path(made))
    tables()
    packed(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), pathlib.Path(made))
