"""What must hold of our kernels' machine code, and what an H200 needs at least for the work of one."""
import re

import machine_code

COPY, F32, BF16 = 4.3e12, 60e12, 800e12  # bytes and operations a second of an H200

PRODUCT = r"\b(linear|matmul|conv\w*|scaled_dot_product_attention|attention|attention_gradients|baddbmm|einsum)\b|backward \(mul, sum"
# The matrix instructions that products must hold, by case and words; from compute capability 8.0 on, where ours use them. (HMMA is
# what Hopper and Blackwell have for a warp. Of the faster ones of four warps, Hopper's HGMMA and IGMMA are used where
# CudaOptions::warpgroups says so; Blackwell's UTCHMMA no kernel of ours uses.)
MATRIX_UNITS = [(r"^attention f32: .*, medium \| attention \[", "HMMA"),
                (r"^product f8.*medium, by warpgroups", "QGMMA"), (r"^product f8", "HMMA|QMMA"),
                (r"^product (bf16|f16).*by warpgroups", "HGMMA"), (r"^product i8: of a linear.*by warpgroups", "IGMMA"),
                (r"^product (bf16|f16)", "HMMA|HGMMA"), (r"^product i8", "IMMA")]
MATRIX_SINCE = 80

MUCH = 1e6     # bytes: what moves fewer waits for its start, not for memory
WIDE = 0.9     # of the accesses to global memory, those of 16 bytes a thread

# Kernels that may have local memory: words, why.
LOCAL = [(r"\b(sin|cos|rope)\b", "the table of NVIDIA's sine for large numbers is read through local memory")]
# Kernels that may have narrow accesses: case, words -> result, why.
NARROW = [
    (r"", r"softmax -> \w+ \[8192, 50257\]", "rows of odd length begin anywhere"),
    (r"rows of a length known when it runs|story|Llama-3", r"\b(n|seq|past)\b", "rows whose length is a symbol begin anywhere"),
    (r"", r"-> \w+ \[(\d+, )?(4096|768|2304|3072|64|64, 1024)\]$", "columns are summed by threads that read 32 bytes and more together"),
    (r"i8: to f32|f32: where", r"", "bytes are read by eights, beside numbers of four bytes"),
    (r"joined|embedding|Llama-3|story", r"concat|embedding|slice_scatter", "where an element lies is decided one by one"),
    (r"Llama-3", r"^add, rms_norm -> f32 \[1\]$", "picks a row of the embedding, whose bytes count as those of the whole table"),
    (r"transposed", r"", "no kernel turns tiles round yet: it reads columns"),
    (r"running sums", r"", "sums of pieces that begin anywhere"),
    (r"^order", r"argsort|index_add", "elements go one by one to where they belong"),
    (r"", r"dequantize", "blocks of 34 bytes"),
    (r"", r"(max|avg)_pool", "windows are read element by element"),
    (r"^depthwise", r"mul, sum, add", "what is added behind a sum is read number by number, from the cache"),
    (r"Q8_0", r"^ -> u8", "blocks are taken apart into planes once, when they are loaded"),
    (r"reduction bf16", r"-> bf16 \[\]$", "the last sum, of few parts"),
    (r"GPT-2", r"^backward( \(add\))? -> ", "what lies side by side is read element by element"),
    (r"GPT-2", r"LayerNorm -> f32 \[8, 1024, 768\]", "one number a row beside the row's vectors"),
]


def kind(row):
    """"product", or "bandwidth" for what should go as fast as memory."""
    return "product" if re.search(PRODUCT, row.words) else "bandwidth"


def floor(use, kind_of_kernel):
    rate = BF16 if kind_of_kernel == "product" else F32
    return max((use["read"] + use["written"]) / COPY, use["flops"] / rate)


def local_memory(row):
    c = row.code
    if not (c.stack or c.local or c.spills()) or any(re.search(words, row.words) for words, _ in LOCAL):
        return None
    return "local memory: a stack of %d bytes, %d accesses" % (c.stack + c.local, c.spills())


def narrow(row):
    if kind(row) != "bandwidth" or max(u["read"] + u["written"] for u in row.uses) < MUCH:
        return None
    computes = "%s -> %s" % (row.words, row.result)
    if any(re.search(case, row.case) and re.search(words, computes) for case, words, _ in NARROW):
        return None
    c = row.code
    loads = max(c.count("LDG") - row.scalars, c.wide("LDG"))  # one number that all threads read costs nothing
    stores = c.count("STG")
    if all(16 * u["written"] <= u["read"] for u in row.uses):
        stores = 0  # one number a row, written by one thread
    part = (c.wide("LDG") + min(c.wide("STG"), stores)) / max(loads + stores, 1)
    return None if part >= WIDE else "only %.0f %% of its accesses are 16 bytes wide" % (100 * part)


def without_matrix_unit(row):
    if machine_code.architecture(row.architecture) < MATRIX_SINCE:
        return None
    for case, units in MATRIX_UNITS:
        instructions = "|".join(machine_code.MATRIX.get(u, u) for u in units.split("|"))
        if re.search(case, "%s | %s" % (row.case, row.words)):
            return None if row.code.count(instructions) else "a product without %s" % units.replace("|", " or ")
    return None


def broken(rows):
    found = []
    for r in rows:
        for why in (local_memory(r), narrow(r), without_matrix_unit(r)):
            if why:
                found.append("%s, %s | %s -> %s: %s" % (r.architecture, r.case, r.words, r.result, why))
    return found
