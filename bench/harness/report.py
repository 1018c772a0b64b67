"""From seconds to the table: medians, ratios taken round by round, goals."""
from statistics import median


def shown(v):
    if v is None:
        return "-"
    return "%.0f" % v if v >= 1000 else "%.1f" % v if v >= 100 else "%.3g" % v


def value(row, seconds):
    """A time in the unit of the row: a rate, or a duration."""
    return seconds * row["work"] if row["rate"] in ("ms", "us") else row["work"] / seconds


def ratio(ours, theirs):
    """How many times as fast we are: the median over rounds, because both sides of a round drift together."""
    return median(t / o for o, t in zip(ours, theirs))


BUSY = 0.15  # of the cores used by others: above it who waits at barriers loses far more than the others took


def cpu_ratio(ours, theirs):
    """The same in processor time, which a neighbour changes little (a runner that spins while it waits pays for it)."""
    pairs = [(o, t) for o, t in zip(ours["cpu_seconds"], theirs["cpu_seconds"]) if o and t]
    return median(t / o for o, t in pairs) if pairs else None


def differs(a, b, tolerance):
    """Whether two answers are not the same computation, or None where one of them is unknown."""
    if not a or not b:
        return None
    if a["count"] != b["count"]:
        return True
    worst = max(abs(x - y) for x, y in zip(a["samples"], b["samples"]))
    return not worst <= tolerance * max(a["rms"], 1e-30)  # NaN differs


def is_build(peer):
    return peer.startswith("build:")


def needs(goal):
    """The unit without which a processor is not asked for this goal, or nothing."""
    at = {"than": 3, "limit": 2}.get(goal[0])
    return goal[at] if at and len(goal) > at else None


def judge(row, done, others, units):
    """[(goal in words, value in words, True / False / None for unknown)], of the goals for a processor with these units."""
    ours = done["runs"]["lightcone"]
    goals = [g for g in row["goals"] if needs(g) in units or not needs(g)]
    goals += [g for p in done["runs"] if is_build(p) for g in (("than", p, 0.97), ("memory", p, 1.01))]
    out = []
    for goal in goals:
        kind = goal[0]
        if ours["missing"]:
            out.append((words(goal), ours["missing"], None))
        elif kind == "than":
            peers = [p for p, r in done["runs"].items() if p != "lightcone" and not r["missing"] and not r["differs"]]
            wanted = [p for p in peers if not is_build(p)] if goal[1] == "best" else [p for p in peers if p == goal[1]]
            if not wanted:
                out.append((words(goal), "nothing to compare with", None))
                continue
            best = min(wanted, key=lambda p: median(done["runs"][p]["seconds"]))
            r = ratio(ours["seconds"], done["runs"][best]["seconds"])
            out.append((words(goal), "%.2fx %s" % (r, best), r >= goal[2]))
        elif kind == "limit":
            share = done["share_of_limit"]
            out.append((words(goal), "unknown" if share is None else "%.0f %%" % (100 * share), None if share is None else share >= goal[1]))
        elif kind == "rss":
            planned = ours["facts"].get("planned_bytes")
            r = ours["peak_rss"] / planned if planned else None
            out.append((words(goal), "unknown" if r is None else "%.2f" % r, None if r is None else r <= goal[1]))
        elif kind == "memory":
            before = done["runs"][goal[1]]
            r = None if before["missing"] else ours["peak_rss"] / before["peak_rss"]
            out.append((words(goal), "unknown" if r is None else "%.3f" % r, None if r is None else r <= goal[2]))
        elif kind == "hidden":
            r = hidden(ours)
            out.append((words(goal), "unknown" if r is None else "%.0f %%" % (100 * r), None if r is None else r >= goal[1]))
        elif kind in ("first", "grown"):
            peer = done["runs"].get(goal[1])
            r = None if peer is None or peer["missing"] else cost(kind, ours) / cost(kind, peer)
            out.append((words(goal), "unknown" if r is None else "%.2f" % r, None if r is None else r <= goal[2]))
        elif kind == "linear":
            base = others.get(goal[1])
            if base is None or base["runs"]["lightcone"]["missing"]:
                out.append((words(goal), "run %s as well" % goal[1], None))
                continue
            r = base["lightcone"] / done["lightcone"]
            out.append((words(goal), "%.2f" % r, r <= goal[2]))
    if done["used_by_others"] > BUSY:  # memory is what it is, times are not
        out = [g if goal[0] in ("rss", "memory", "grown") else (g[0], g[1] + ", on a busy machine", None) for goal, g in zip(goals, out)]
    return out


def cost(kind, run):
    """What a model costs before it runs often: seconds to the first answer, or the bytes by which the process grew."""
    return run["build_s"] + run["first_s"] if kind == "first" else run["peak_rss"] - run["facts"]["rss_before"]


def hidden(run):
    """The share of its exchanges' own time by which a step of several ranks is not longer than one without exchanges."""
    rounds = list(zip(run["seconds"], run.get("alone_seconds", ()), run.get("exchange_seconds", ())))
    return median(1 - (step - alone) / exchange for step, alone, exchange in rounds) if rounds else None


def words(goal):
    where = ", with " + needs(goal) if needs(goal) else ""
    return {
        "than": lambda: ">= %gx %s%s" % (goal[2], goal[1] if goal[1] != "best" else "the best peer", where),
        "limit": lambda: ">= %g %% of the limit%s" % (100 * goal[1], where),
        "memory": lambda: "memory <= %gx %s" % (goal[2], goal[1]),
        "first": lambda: "first answer <= %gx %s" % (goal[2], goal[1]),
        "grown": lambda: "memory of the model <= %gx %s" % (goal[2], goal[1]),
        "rss": lambda: "memory <= %g of the plan" % goal[1],
        "hidden": lambda: ">= %g %% of the exchanges hidden" % (100 * goal[1]),
        "linear": lambda: "a node <= %g of what it is in %s" % (goal[2], goal[1]),
    }[goal[0]]()


def lines(row, done):
    """A workload for people."""
    ours = done["runs"]["lightcone"]
    head = "%-18s %10s %-8s" % (row["name"], shown(done["lightcone"]), row["rate"])
    if done["share_of_limit"] is not None:
        head += "  %3.0f %% of %s" % (100 * done["share_of_limit"], row["limit"][0])
    if done["used_by_others"] > BUSY:
        head += "  (others used %.0f %% of the cores: nothing is judged)" % (100 * done["used_by_others"])
    if ours["missing"]:
        head += "  MISSING: " + ours["missing"]
    yield head
    for peer, r in done["runs"].items():
        if peer == "lightcone":
            continue
        if r["missing"]:
            yield "  %-16s missing: %s" % (peer, r["missing"])
            continue
        note = {True: "  DIFFERS: not the same answer", None: "  answer not compared", False: ""}[r["differs"]]
        told = "" if not r["told"] else "  (%s)" % ", ".join("%s" % v for v in r["told"].values())
        against = "" if ours["missing"] else "  %6.2fx" % ratio(ours["seconds"], r["seconds"])
        cpu = None if ours["missing"] else cpu_ratio(ours, r)
        against += "" if cpu is None else "  %6.2fx cpu" % cpu
        yield "  %-16s %10s %-8s%s%s%s" % (peer, shown(value(row, median(r["seconds"]))), row["rate"], against, told, note)
    for peer, r in done["runs"].items():
        if hidden(r) is not None:
            alone, exchanges, cpu, share = parts_of_ranks(done, r)
            yield "    %-18s %s ms without exchanges, %s ms exchanges alone (%s ms of a processor)%s" % (
                peer, alone, exchanges, cpu, share and ", %s %% of them hidden" % share)
    for peer, r in done["runs"].items():
        if "flop" in done and r["seconds"]:
            _, gflops, memory, planned, before, first = step(done, r)
            part = " (plan %s)" % planned if planned else " (%s before)" % before if before else ""
            yield "    %-14s %s GFLOP/s, %s MB%s, %s s to the end of the first step" % (peer, gflops, memory, part, first)
    for goal, value_text, reached in done["goals"]:
        yield "    %-8s %s: %s" % ({True: "reached", False: "MISSED", None: "open"}[reached], goal, value_text)


def summary(results):
    goals = [(name, g) for name, d in results.items() for g in d["goals"]]
    count = {k: sum(1 for _, g in goals if g[2] is k) for k in (True, False, None)}
    yield "goals: %d reached, %d missed, %d open" % (count[True], count[False], count[None])
    for name, (goal, value_text, reached) in goals:
        if reached is False:
            yield "  missed  %-18s %s: %s" % (name, goal, value_text)


def page(result):
    """One machine: every row, each peer's ratio, and steps of training."""
    return [*results_table(result), *peers_table(result), *steps_table(result), *parts_table(result), *ranks_table(result)]


def pages(results):
    """Several machines side by side: speeds, and ratios to the fastest peer."""
    names = dict.fromkeys(name for r in results for name in r["workloads"])
    machines = [r["machine"]["cpu"] for r in results]
    yield from table(["work", *machines], ([name, *(speed(r["workloads"].get(name)) for r in results)] for name in names))
    yield ""
    yield from table(["times as fast as the fastest peer", *machines],
                     ([name, *(best_ratio(r["workloads"].get(name)) for r in results)] for name in names))


def table(heads, rows):
    yield "| %s |" % " | ".join(heads)
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| %s |" % " | ".join(row)


def results_table(result):
    """The table of docs/performance/results.md."""
    heads = ["work", "speed", "of the limit", "fastest peer", "times as fast", "goals", "measured"]
    yield from table(heads, ([name, speed(d), percent(d), best_peer(d), best_ratio(d), verdict(d), d["measured"]["date"][:10]]
                             for name, d in result["workloads"].items()))


def peers_table(result):
    """How many times as fast as each peer."""
    names = dict.fromkeys(p for d in result["workloads"].values() for p, r in d["runs"].items() if r.get("ratio"))
    rows = {name: d for name, d in result["workloads"].items() if any(r.get("ratio") for r in d["runs"].values())}
    if not names:
        return
    yield ""
    yield from table(["times as fast as", *names], ([name, *(peer_ratio(d["runs"].get(p, {})) for p in names)] for name, d in rows.items()))


def steps(result):
    return {name: d for name, d in result["workloads"].items() if "flop" in d}


def steps_table(result):
    """Steps of training, each side in a row of its own."""
    if not steps(result):
        return
    yield ""
    heads = ["work", "by", "ms a step", "GFLOP/s", "times as long as ours", "peak memory, MB", "plan, MB", "before the model, MB",
             "first step after, s"]
    yield from table(heads, ([name, peer, *step(d, r)[:2], shown(r.get("ratio", 1)), *step(d, r)[2:]]
                             for name, d in steps(result).items() for peer, r in d["runs"].items() if r["seconds"]))


def parts_table(result):
    """How Lightcone's steps of training split."""
    profiles = {name: p for name, d in steps(result).items() if (p := d["runs"]["lightcone"].get("facts", {}).get("profile"))}
    if not profiles:
        return
    yield ""
    parts = ("forward_ms", "backward_ms", "update_ms")
    yield from table(["work", "forward, ms", "backward, ms", "update, ms", "outside of kernels, ms"],
                     ([name, *(shown(p[k]) for k in parts), shown(p["step_ms"] - sum(p[k] for k in parts))] for name, p in profiles.items()))


def parts_of_ranks(done, r):
    """The share that is hidden is "" where nothing could be computed meanwhile."""
    share = "%.0f" % (100 * hidden(r)) if any("hidden" in goal for goal, _, _ in done["goals"]) else ""
    return [*(shown(1e3 * median(r[key])) for key in ("alone_seconds", "exchange_seconds", "exchange_cpu_seconds")), share]


def ranks_table(result):
    """Steps or tokens of several ranks: with exchanges, without, and the exchanges alone."""
    rows = [[name, peer, shown(1e3 * median(r["seconds"])), *parts_of_ranks(d, r)]
            for name, d in result["workloads"].items() for peer, r in d["runs"].items() if hidden(r) is not None]
    if rows:
        yield ""
        heads = ["work", "by", "ms a step or token", "without exchanges, ms", "exchanges alone, ms", "a processor's, ms", "of them hidden, %"]
        yield from table(heads, rows)


def step(done, r):
    """A step of training: milliseconds, GFLOP/s, peak memory in MB, the plan, what there was before the model, and the seconds
    from there to the end of the first step."""
    seconds, facts = median(r["seconds"]), r["facts"]
    planned, before = (shown(facts[k] / 1e6) if k in facts else "" for k in ("planned_bytes", "rss_before"))
    return [shown(1e3 * seconds), shown(1e-9 * done["flop"] / seconds), shown(r["peak_rss"] / 1e6), planned, before,
            shown(r["build_s"] + r["first_s"])]


def speed(done):
    if done is None or done["lightcone"] is None:
        return ""
    return "%s %s" % (shown(done["lightcone"]), done["unit"])


def percent(done):
    return "" if done["share_of_limit"] is None else "%.0f %%" % (100 * done["share_of_limit"])


def fastest(done):
    """The peer that was fastest, or None; Lightcone itself, another build or on one rank, is none."""
    runs = {} if done is None else done["runs"]
    peers = [p for p, r in runs.items() if r.get("ratio") and not r["differs"] and not is_build(p) and p != "one-rank"]
    return min(peers, key=lambda p: runs[p]["ratio"], default=None)


def best_peer(done):
    peer = fastest(done)
    return "" if peer is None else peer + "".join(" (%s)" % v for v in done["runs"][peer]["told"].values())


def best_ratio(done):
    peer = fastest(done)
    return "" if peer is None else peer_ratio(done["runs"][peer])


def peer_ratio(run):
    return "%.2f%s" % (run["ratio"], " (differs)" if run["differs"] else "") if run.get("ratio") else ""


def verdict(done):
    """All goals for a machine in one word; goals against another build are for a change."""
    reached = [ok for goal, _, ok in done["goals"] if "build:" not in goal]
    if False in reached:
        return "**missed**"
    if done["used_by_others"] > BUSY:
        return "busy"
    return "" if not reached else "open" if None in reached else "reached"
