"""PyTorch on the same card in the same minutes, by rows of the same names: a line of JSON each. Times are the best of three rounds by
the device's events."""
import json
import sys

try:
    import torch
except ImportError as e:
    print(json.dumps({"missing": str(e)}))
    sys.exit(0)

DEVICE, HALF = "cuda", torch.bfloat16


def seconds(call, n=20):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    best = float("inf")
    for _ in range(3):
        begin.record()
        for _ in range(n):
            call()
        end.record()
        torch.cuda.synchronize()
        best = min(best, begin.elapsed_time(end) / n)
    return best / 1e3


def say(row, **figures):
    print(json.dumps({"row": row, **figures}), flush=True)


def random(*shape, dtype=HALF):
    return torch.randn(*shape, device=DEVICE, dtype=dtype)


def products():
    for m, n, name in ((512, 4096, "512 x 4096 x 4096"), (4096, 4096, "4096^3"), (8192, 8192, "8192^3")):
        k = n
        a, b = random(m, k), random(n, k)
        say("gemm bf16 " + name, tflops=2e-12 * m * n * k / seconds(lambda: a @ b.t()))
    a, b = random(2048, 2048, dtype=torch.float32), random(2048, 2048, dtype=torch.float32)
    for precision, name in (("highest", ""), ("high", ", High"), ("medium", ", Medium")):
        torch.set_float32_matmul_precision(precision)
        say("gemm f32 2048^3" + name, tflops=2e-12 * 2048**3 / seconds(lambda: a @ b.t()))
    torch.set_float32_matmul_precision("highest")
    for rows, kind in ((1, "gemv"), (4, "few rows")):
        for k, n, many in ((4096, 14336, 4), (14336, 4096, 4), (4096, 4096, 8)):
            if rows > 1 and n == k:
                continue
            weights, x = [random(n, k) for _ in range(many)], random(rows, k)
            t = seconds(lambda: [x @ w.t() for w in weights]) / many
            name = "%s bf16 %s%d x %d" % (kind, "" if rows == 1 else "4 x ", k, n)
            say(name, gbytes_per_s=2e-9 * (n * k + rows * (n + k)) / t, us=1e6 * t)


def attention():
    q, k, v = (random(4, 16, 4096, 128) for _ in range(3))
    for causal, name in ((False, ""), (True, " causal")):
        t = seconds(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal), 5)
        for precision in ("", ", Medium"):
            say("attention bf16 [4, 16, 4096, 128]" + name + precision, tflops=4e-12 * 64 * 4096**2 * 128 / (2 if causal else 1) / t, us=1e6 * t)
    q, k, v = random(1, 32, 1, 128), random(1, 8, 8192, 128), random(1, 8, 8192, 128)
    t = seconds(lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True))
    say("attention bf16, one query of 32 heads, 8192 keys", tflops=4e-12 * 32 * 8192 * 128 / t, us=1e6 * t)


def rows():
    x = torch.empty(1 << 30, dtype=torch.uint8, device=DEVICE)
    y = torch.empty_like(x)
    say("ceiling copy", gbytes_per_s=2e-9 * (1 << 30) / seconds(lambda: y.copy_(x)))
    del x, y
    f = torch.nn.functional
    for dtype, name in ((torch.float32, "f32"), (HALF, "bf16")):
        x = random(8192, 4096, dtype=dtype)
        w, b = random(4096, dtype=dtype), random(4096, dtype=dtype)
        size = 1e-9 * x.numel() * x.element_size()
        say("gelu " + name, gbytes_per_s=2 * size / seconds(lambda: f.gelu(x)))
        say("softmax " + name, gbytes_per_s=2 * size / seconds(lambda: torch.softmax(x, 1)))
        say("layer norm " + name, gbytes_per_s=2 * size / seconds(lambda: f.layer_norm(x, (4096,), w, b)))
        if dtype == HALF:
            continue
        z = torch.randn_like(x)
        say("add f32", gbytes_per_s=3 * size / seconds(lambda: x + z))
        say("sums of rows f32", gbytes_per_s=size / seconds(lambda: x.sum(1)))
        say("sums of columns f32", gbytes_per_s=size / seconds(lambda: x.sum(0)))
        say("transposed f32", gbytes_per_s=2 * size / seconds(lambda: (x.t() * 2.0).contiguous()))
        parameter = torch.nn.Parameter(x.clone())
        parameter.grad = z
        step = torch.optim.AdamW([parameter], fused=True)
        say("AdamW f32", gbytes_per_s=7 * size / seconds(step.step))


say("PyTorch", version=torch.__version__, device=torch.cuda.get_device_name())
for part in (products, attention, rows):
    part()
