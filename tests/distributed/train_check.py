#!/usr/bin/env python3
"""`lightcone train` on ranks that MPI starts learns what one process learns, on any mesh; wrong ranks are found before the first
step; and a run whose ranks are killed or stopped at any moment ends with one Error and goes on with the bits of one that was not.

    train_check.py [MPIEXEC LIGHTCONE [KILLS [SEED]]]
"""
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from mpi_check import ENVIRONMENT, alive

WORDS = "the cat sat on the mat and the dog sat on the rug, and a bird sang to them all day. "
wrong = []
mpiexec = lightcone = None


def expect(right, what, output=""):
    if not right:
        wrong.append(what + ("\n" + output if output else ""))


# ---- configurations ---------------------------------------------------------------------------------------------------


def mlp(steps=40):
    return {"model": {"kind": "mlp", "hidden": [16, 8], "dropout": 0.1},
            "data": {"format": "csv", "train": "train.csv", "shape": [4], "classes": 4},
            "train": {"steps": steps, "batch": 16, "lr": 0.01, "clip": 1}, "evaluate": {"every": 20}, "save": {"every": 5}, "log": {"every": 5}}


def gpt(steps=20):
    return {"model": {"kind": "llama", "layers": 2, "width": 32, "heads": 4, "kv_heads": 2, "intermediate": 64, "context": 16, "vocabulary": 32,
                      "tokenizer": "char", "tied": False},
            "data": {"format": "text", "train": "t.txt"},
            "train": {"steps": steps, "batch": 8, "lr": 0.01, "clip": 1}, "evaluate": {"every": 10, "samples": 16}, "save": {"every": 5}, "log": {"every": 5}}


def on(config, mesh, shard="none", timeout=60):
    return dict(config, mesh=mesh, distributed={"shard": shard, "timeout": timeout})


def size(mesh):
    n = 1
    for ranks in mesh.values():
        n *= ranks
    return n


def tensors(path):
    b = pathlib.Path(path).read_bytes()
    n = struct.unpack("<Q", b[:8])[0]
    head = json.loads(b[8:8 + n])
    head.pop("__metadata__", None)
    return {k: b[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in head.items()}


def checkpoint(folder):
    """The tensors of the last checkpoint, of one file or of an index and its files."""
    index = folder / "run.safetensors.index.json"
    if not index.exists():
        return tensors(folder / "run.safetensors")
    places, all_of_them = json.loads(index.read_text())["weight_map"], {}
    for file in sorted(set(places.values())):
        all_of_them.update(tensors(folder / file))
    expect(set(all_of_them) == set(places), "%s names other tensors than there are" % index)
    return all_of_them


def losses(folder):
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [(line["step"], line.get("loss"), line.get("held_out_loss")) for line in lines]


class Folder:
    """A folder with data and configurations."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        draw = random.Random(7)
        with open(self.path / "train.csv", "w") as f:
            f.write("a,b,label,c,d\n")
            for k in range(240):
                y = k % 4
                x = [draw.gauss(2 * (y == i), 0.7) for i in range(4)]
                f.write("%.4f,%.4f,%d,%.4f,%.4f\n" % (x[0], x[1], y, x[2], x[3]))
        (self.path / "t.txt").write_text(WORDS * 60)

    def write(self, name, config):
        path = self.path / (name + ".json")
        path.write_text(json.dumps(config))
        return path

    def start(self, ranks, config, *options):
        command = [lightcone, "train", str(config), *options]
        if ranks > 1:
            command = [mpiexec, "-n", str(ranks), *command]
        return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def run(self, ranks, config, *options, limit=120):
        return finish(self.start(ranks, config, *options), limit, "%d ranks, %s %s" % (ranks, config.name, " ".join(options)))


def finish(process, limit, what):
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        expect(False, "%s did not end within %g s" % (what, limit), out + err)
    return process.returncode, out, err


def goes_on_if_it_was_the_last(process, victim, ranks, limit):
    """A rank that is stopped while it takes MPI down ends no other: all have learned everything and ended well, and the launcher waits
    for it, as it would for any program. Such a rank goes on. Returns whether it was one."""
    until = time.monotonic() + limit
    while process.poll() is None and time.monotonic() < until:
        if not any(alive(pid) for pid in ranks if pid != victim):
            time.sleep(5)  # a launcher ends what is left of a run that failed
            if process.poll() is None and alive(victim):
                os.kill(victim, signal.SIGCONT)
                return True
        time.sleep(0.05)
    return False


START = 24  # lightcone waits so long for all processes when MPI begins, and for its turn to say so


def said(err):
    """What lightcone says; the launcher has lines of its own."""
    return [line for line in err.splitlines() if line.startswith("lightcone: ") and not line.startswith("lightcone: note: ")]


# ---- the same as one process ------------------------------------------------------------------------------------------


def near(a, b, room):
    return len(a) == len(b) and all(x[0] == y[0] and all((v is None) == (w is None) and (v is None or abs(v - w) <= room) for v, w in zip(x[1:], y[1:]))
                                    for x, y in zip(a, b))


MESHES = [({"data": 2}, "none"), ({"model": 2}, "none"), ({"data": 2}, "optimizer"), ({"data": 4}, "full"), ({"data": 2, "model": 2}, "none"),
          ({"data": 2, "model": 2}, "full")]


def learns_the_same(f, name, config):
    one = f.write(name, config)
    status, out, err = f.run(1, one)
    expect(status == 0, "one process: %s" % name, out + err)
    whole = f.path / (name + ".run")
    first = losses(whole)[0][1]
    expect(losses(whole)[-1][1] < 0.9 * first, "%s learns nothing" % name)
    for k, (mesh, shard) in enumerate(MESHES):
        begin, what = time.monotonic(), "%s on %s, shard %s" % (name, mesh, shard)
        path = f.write("%s-%d" % (name, k), on(config, mesh, shard))
        status, out, err = f.run(size(mesh), path)
        expect(status == 0 and not said(err), what, out + err)
        if status:
            continue
        folder = f.path / ("%s-%d.run" % (name, k))
        expect(near(losses(folder), losses(whole), 1e-4), what + ": other losses", "%s\n%s" % (losses(folder), losses(whole)))
        last = "step %d/%d  held out" % (config["train"]["steps"], config["train"]["steps"])
        expect(out.count(last) == 1, what + ": not said once", out)
        files = {p.name for p in folder.iterdir() if not p.name.startswith("run")}
        expect(files == {p.name for p in whole.iterdir() if not p.name.startswith("run")}, what + ": other files", str(files))
        best, wanted = tensors(folder / "best.safetensors"), tensors(whole / "best.safetensors")
        expect({k: len(v) for k, v in best.items()} == {k: len(v) for k, v in wanted.items()}, what + ": best.safetensors is another model's")
        run, wanted = checkpoint(folder), checkpoint(whole)
        expect({k: len(v) for k, v in run.items()} == {k: len(v) for k, v in wanted.items()}, what + ": another checkpoint")
        if k in (3, 4):  # and once more
            status, out, err = f.run(size(mesh), path, "-o", str(f.path / "again"))
            expect(status == 0, what + ", again", out + err)
            expect(checkpoint(f.path / "again") == run, what + ": other bits in another run")
            expect(losses(f.path / "again") == losses(folder), what + ": other losses in another run")
            shutil.rmtree(f.path / "again")
        print("%s: %.1f s" % (what, time.monotonic() - begin), flush=True)


def goes_on_with_other_ranks(f):
    """Stopped by a signal on one mesh, it goes on with others: within rounding, and with the same one bit for bit."""
    config = gpt(30)
    config["save"]["every"] = 1000
    meshes = [({}, "none"), ({"data": 2, "model": 2}, "full"), ({"model": 2}, "none"), ({"data": 4}, "optimizer")]
    paths = [f.write("go-%d" % k, on(config, *m)) for k, m in enumerate(meshes)]
    wholes = []
    for k, (mesh, _) in enumerate(meshes):
        folder = f.path / ("whole-%d" % k)
        status, out, err = f.run(size(mesh), paths[k], "-o", str(folder))
        expect(status == 0, "whole %s" % mesh, out + err)
        wholes.append(folder)
    for k, (mesh, _) in enumerate(meshes[:2]):
        stopped = f.path / ("stopped-%d" % k)
        process = f.start(size(mesh), paths[k], "-o", str(stopped))
        seen = ""
        while "step 10/" not in seen:
            line = process.stdout.readline()
            if not line:
                break
            seen += line
        ranks = pids_of(process.pid) if size(mesh) > 1 else [process.pid]
        os.kill(random.Random(k).choice(ranks), signal.SIGTERM)  # one alone: all stop after the same step
        status, out, err = finish(process, 60, "stopped %s" % mesh)
        expect("stopped and saved after step" in out, "%s does not stop" % mesh, seen + out + err)
        for j, (other, _) in enumerate(meshes):
            folder = f.path / "on"
            shutil.copytree(stopped, folder)
            status, out, err = f.run(size(other), paths[j], "-o", str(folder), "--resume")
            what = "from %s to %s" % (mesh, other)
            expect(status == 0 and out.count("resumed     at step") == 1, what, out + err)
            if status == 0:
                expect(near(losses(folder), losses(wholes[0]), 1e-4), what + ": other losses", "%s\n%s" % (losses(folder), losses(wholes[0])))
                if j == k:
                    expect(checkpoint(folder) == checkpoint(wholes[k]), what + ": other bits")
            shutil.rmtree(folder)
    print("other ranks go on", flush=True)


# ---- wrong ranks ------------------------------------------------------------------------------------------------------


def wrong_ranks(f):
    good = on(mlp(), {"data": 2})
    f.write("good", good)

    def refuses(what, *words, ranks=2, config="good", program=None, env=None):
        command = [lightcone, "train", str(f.path / (config + ".json")), "-o", str(f.path / "none"), "--overwrite"]
        command = program or command
        if ranks > 1:
            command = [mpiexec, "-n", str(ranks), *command]
        process = subprocess.Popen(command, env=dict(ENVIRONMENT, **(env or {})), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True)
        status, out, err = finish(process, 60, what)
        expect(status not in (0, None), what + ": is taken", out + err)
        expect(len(said(err)) == 1 and all(w in said(err)[0] for w in words), what + ": one sentence with " + ", ".join(words), out + err)
        expect("step 5/" not in out, what + ": takes steps", out)

    def by_rank(other):
        """Rank 1 has another configuration."""
        return ["sh", "-c", 'exec "$0" train "%s/$(test "$OMPI_COMM_WORLD_RANK$PMI_RANK" = 1 && echo %s || echo good).json" -o "%s"' % (
            f.path, other, f.path / "none"), lightcone]

    def other(name, **sections):
        c = json.loads(json.dumps(good))
        for section, values in sections.items():
            c.setdefault(section, {}).update(values)
        f.write(name, c)
        return name

    refuses("an unknown axis", "there is no mesh.pipe", config=other("axis", mesh={"pipe": 2}))
    refuses("three ranks", "the mesh (data=2) has 2 ranks, and there are 3", "mpirun -n 2", ranks=3)
    refuses("one rank", "the mesh (data=2) has 2 ranks, and this is one process", "mpirun -n 2", ranks=1)
    f.write("plain", mlp())
    refuses("no mesh", '2 processes were started, and the configuration says nothing of them', '{"data": 2}', config="plain")
    refuses("a batch that cannot be divided", "train.batch is 15, which mesh.data = 2 must divide", config=other("odd", train={"batch": 15}))
    refuses("heads", "4 attention heads, which mesh.model = 3 must divide", config=f.write("heads", on(gpt(), {"model": 3})).stem, ranks=3)
    refuses("another rate", "ranks differ in the configuration", "train.lr = 0.01", "rank 1 has train.lr = 0.02",
            program=by_rank(other("rate", train={"lr": 0.02})))
    refuses("another mesh", "ranks differ in the configuration", "mesh data=2", "rank 1 has mesh model=2",
            program=by_rank(f.write("mesh", on(mlp(), {"model": 2})).stem))
    refuses("a missing configuration", "rank 1: ", "none.json", program=by_rank("none"))
    (f.path / "other").mkdir()
    shutil.copy(f.path / "good.json", f.path / "other/good.json")
    refuses("missing data", "rank 1: ", "train.csv", program=by_rank("other/good"))
    rows = (f.path / "train.csv").read_text().splitlines()
    rows[7] = "0,0,1,0,0"
    (f.path / "other/train.csv").write_text("\n".join(rows[:-2]) + "\n")
    refuses("other data", "ranks differ in the data", program=by_rank("other/good"))
    refuses("torchrun", "torchrun started 2 processes", "mpirun -n 2", ranks=1,
            env={"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0", "MASTER_ADDR": "localhost"})
    print("wrong ranks are refused", flush=True)


# ---- kills ------------------------------------------------------------------------------------------------------------


def pids_of(launcher):
    """The ranks that the launcher, or a process of its own, has started. A process that is still the launcher's is no rank."""
    parents, ranks = {}, []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parents[int(entry)] = int(pathlib.Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()[1])
                if os.path.samefile("/proc/%s/exe" % entry, lightcone):
                    ranks.append(int(entry))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                pass
    return sorted(pid for pid in ranks if launcher in (parents[pid], parents.get(parents[pid])))


def kills(f, count, seed):
    """Runs of random meshes are killed or stopped again and again, until one attempt comes to the end."""
    draw = random.Random(seed)
    timeout, done, ended, late, worst = 6, {"killed": 0, "stopped": 0}, 0, 0, 0.0
    cases = []
    for name, config in (("k-mlp", mlp(150)), ("k-gpt", gpt(60))):
        config["evaluate"]["every"], config["save"]["every"] = config["train"]["steps"] // 3, 3
        for mesh, shard in MESHES:
            cases.append((f.write("%s-%s-%d" % (name, "-".join("%s%d" % m for m in mesh.items()), len(cases)), on(config, mesh, shard, timeout)), mesh))
    whole = {}
    while sum(done.values()) < count:
        path, mesh = draw.choice(cases)
        if path not in whole:
            begin = time.monotonic()
            status, out, err = f.run(size(mesh), path, "-o", str(f.path / (path.stem + "-whole")))
            expect(status == 0, "%s, not killed" % path.stem, out + err)
            whole[path] = time.monotonic() - begin, checkpoint(f.path / (path.stem + "-whole")), losses(f.path / (path.stem + "-whole"))
        folder, finished, attempts = f.path / "killed", False, 0
        while not finished:
            attempts += 1
            process = f.start(size(mesh), path, "-o", str(folder), "--resume")
            begin, pids, how = time.monotonic(), [], None
            # After some attempts one may come to its end.
            if attempts <= 4 and sum(done.values()) < count:
                time.sleep(draw.random() * whole[path][0] * 0.9)
                pids = [pid for pid in pids_of(process.pid) if alive(pid)]
                if pids and process.poll() is None:
                    how = draw.choice(["killed", "killed", "stopped"])
                    moment = time.monotonic()
                    victim = draw.choice(pids)
                    try:
                        os.kill(victim, signal.SIGKILL if how == "killed" else signal.SIGSTOP)
                    except ProcessLookupError:
                        how = None
                    if how == "stopped" and goes_on_if_it_was_the_last(process, victim, pids, START + 10):
                        how, late = None, late + 1
            what = "%s, attempt %d (%s)" % (path.stem, attempts, how)
            status, out, err = finish(process, 60 if how else 300, what)  # a whole run takes long on a machine that computes other things
            expect(len(said(err)) <= 1, what + ": several sentences", err)
            if how and status != 0:
                done[how] += 1
                worst = max(worst, time.monotonic() - moment)
                limit = (timeout if how == "killed" else START) + 10  # a rank may be stopped before MPI has begun
                expect(time.monotonic() - moment < limit, what + ": ends after %.1f s" % (time.monotonic() - moment), out + err)
                expect(how == "killed" or len(said(err)) == 1, what + ": no sentence", out + err)
            elif not how:
                expect(status == 0, what + ": exit status %s" % status, out + err)
            finished = status == 0
            until = time.monotonic() + 5
            while any(map(alive, pids)) and time.monotonic() < until:
                time.sleep(0.02)
            left = [pid for pid in pids if alive(pid)]
            expect(not left, what + ": processes are left: %s" % left, out + err)
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            if len(wrong) > 5:
                return
        ended += 1
        expect(checkpoint(folder) == whole[path][1], "%s: other bits after %d attempts" % (path.stem, attempts))
        expect(losses(folder) == whole[path][2], "%s: other losses after %d attempts" % (path.stem, attempts), "%s\n%s" % (losses(folder), whole[path][2]))
        shutil.rmtree(folder)
        print("%s: the bits of a whole run after %d attempts; %d killed, %d stopped so far" % (path.stem, attempts, done["killed"], done["stopped"]), flush=True)
    print("%d killed, %d stopped, %d after all others had ended; %d runs came to their end; the slowest end of all ranks took %.1f s (time-out %g s)"
          % (done["killed"], done["stopped"], late, ended, worst, timeout), flush=True)


def main(given=None, program=None, count="10", seed="1"):
    global mpiexec, lightcone
    if not given or not os.path.exists(given):
        print("skipped: there is no MPI here (Debian: openmpi-bin libopenmpi-dev)")
        return 77
    mpiexec, lightcone = given, program
    try:  # a sandbox may forbid what a launcher does
        starts = subprocess.run([mpiexec, "-n", "2", sys.executable, "-c", ""], env=ENVIRONMENT, capture_output=True, text=True, timeout=30)
    except subprocess.TimeoutExpired:
        starts = None
    if starts is None or starts.returncode:
        print("skipped: MPI starts no processes here: " + (starts.stdout + starts.stderr if starts else "it does not end"))
        return 77
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        f = Folder(folder)
        if int(count) <= 10:
            learns_the_same(f, "mlp", mlp())
            learns_the_same(f, "gpt", gpt())
            goes_on_with_other_ranks(f)
            wrong_ranks(f)
        kills(f, int(count), int(seed))
    print("%.1f s" % (time.monotonic() - begin))
    print("\n".join(wrong) or "all is as it should be")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
