"""A benchmark row's limit is measured through the row's own memory, and only when asked for.

    check_limit.py RUNNER
"""
import json
import subprocess
import sys

runner = subprocess.Popen([sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(line):
    runner.stdin.write(line + "\n")
    runner.stdin.flush()
    return json.loads(runner.stdout.readline())


def limit_rate(spec, asked):
    loaded = ask("load " + json.dumps(dict(spec, threads=1)))
    assert loaded.get("ok"), loaded
    return ask("go " + json.dumps({"seconds": 0.02, "limit": asked})).get("limit_rate")


rows = {"kind": "fused", "op": "softmax", "rows": 256, "columns": 1024}
rate = limit_rate(rows, True)
assert rate and 1e8 < rate < 1e13, "a copy of %s bytes a second" % rate
assert limit_rate(rows, False) is None, "a limit that nobody asked for"
assert limit_rate({"kind": "scalar"}, True) is None, "a sum of two scalars is no copy"
runner.stdin.close()
sys.exit(runner.wait(10))
