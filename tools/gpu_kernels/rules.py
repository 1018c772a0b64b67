"""What must hold of our kernels' machine code, and what an H200 needs at least for the work of one."""
import re

COPY, F32, BF16 = 4.3e12, 60e12, 800e12  # bytes and operations a second of an H200

PRODUCT = r"\b(linear|matmul|conv\w*|scaled_dot_product_attention|attention|baddbmm|einsum)\b"


def kind(row):
    """"product", or "bandwidth" for what should go as fast as memory."""
    return "product" if re.search(PRODUCT, row.words) else "bandwidth"


def floor(use, kind_of_kernel):
    rate = BF16 if kind_of_kernel == "product" else F32
    return max((use["read"] + use["written"]) / COPY, use["flops"] / rate)


def broken(rows):
    return []
