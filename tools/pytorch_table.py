#!/usr/bin/env python3
"""Writes docs/pytorch.md: PyTorch's names, and what they are here.

    tools/pytorch_table.py            # write it
    tools/pytorch_table.py --check    # fail when it is not what would be written, and when a note is about nothing

Whether a function is there is read from the public headers; in what it differs stands in the notes below.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/pytorch.md"

NAMES = {
    "Creation": """zeros ones empty full zeros_like ones_like empty_like full_like arange linspace logspace eye meshgrid
        tril_indices triu_indices tensor from_numpy rand randn randint randperm normal bernoulli multinomial manual_seed
        diag diag_embed heaviside""",
    "Shapes": """reshape view flatten ravel unflatten squeeze unsqueeze permute transpose swapaxes swapdims t movedim moveaxis expand
        expand_as view_as broadcast_to broadcast_tensors narrow select split chunk tensor_split unbind cat concat concatenate stack hstack
        vstack dstack column_stack tile repeat repeat_interleave flip fliplr flipud rot90 roll atleast_1d atleast_2d
        atleast_3d unfold contiguous clone""",
    "Indexing": """gather scatter scatter_add scatter_reduce index_select index_add index_copy index_fill index_put index_reduce take
        take_along_dim put masked_fill masked_select masked_scatter nonzero argwhere unique unique_consecutive where diagonal diagonal_scatter
        select_scatter slice_scatter searchsorted bucketize bincount histc tril triu trace""",
    "Arithmetic": """add sub subtract mul multiply div divide true_divide neg negative positive remainder fmod floor_divide pow
        addcmul addcdiv lerp maximum minimum fmax fmin clamp clip clamp_min clamp_max abs absolute sign sgn signbit copysign
        nextafter gcd lcm ldexp frexp square bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift
        bitwise_right_shift""",
    "Functions": """exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2 xlogy sqrt rsqrt reciprocal sin cos tan asin acos
        atan atan2 sinh cosh tanh asinh acosh atanh sinc hypot deg2rad rad2deg floor ceil trunc round frac nan_to_num logit
        erf erfc erfinv lgamma digamma polygamma i0 sigmoid""",
    "Comparison": """eq ne lt le gt ge equal isclose allclose isnan isinf isposinf isneginf isfinite isin logical_not
        logical_and logical_or logical_xor sort argsort topk kthvalue msort""",
    "Reductions": """sum mean prod amax amin aminmax max min argmax argmin any all std var std_mean var_mean norm logsumexp
        count_nonzero nansum nanmean median nanmedian quantile nanquantile mode cumsum cumprod cummax cummin logcumsumexp
        diff cov corrcoef trapezoid""",
    "Linear algebra": """matmul mm bmm mv dot vdot inner outer addmm addmv addr baddbmm addbmm chain_matmul tensordot einsum
        kron cross cdist matrix_power cholesky_solve cholesky_inverse logdet linalg.cholesky linalg.solve
        linalg.solve_triangular linalg.inv linalg.det linalg.slogdet linalg.qr linalg.lstsq linalg.lu_factor
        linalg.lu_solve linalg.multi_dot linalg.cross linalg.vecdot linalg.vector_norm linalg.matrix_norm linalg.svd
        linalg.eigh linalg.eig linalg.pinv""",
    "Complex numbers and Fourier transforms": """complex polar view_as_real view_as_complex conj angle real imag isreal
        fft.fft fft.ifft fft.rfft fft.irfft fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.fftn fft.ifftn fft.fftshift fft.ifftshift
        fft.fftfreq fft.rfftfreq stft istft hann_window hamming_window blackman_window bartlett_window""",
    "Activations": """relu relu6 leaky_relu prelu elu selu celu gelu silu mish softplus softsign tanhshrink hardshrink softshrink
        hardtanh hardsigmoid hardswish threshold glu logsigmoid softmax softmin log_softmax gumbel_softmax rrelu""",
    "Layers as functions": """linear bilinear embedding embedding_bag one_hot conv1d conv2d conv3d conv_transpose1d
        conv_transpose2d conv_transpose3d max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d lp_pool1d lp_pool2d
        adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d adaptive_avg_pool1d adaptive_avg_pool2d
        adaptive_avg_pool3d max_unpool1d max_unpool2d max_unpool3d fold layer_norm rms_norm group_norm batch_norm
        instance_norm local_response_norm normalize cosine_similarity pairwise_distance dropout alpha_dropout
        feature_alpha_dropout dropout1d dropout2d dropout3d pad interpolate grid_sample affine_grid pixel_shuffle
        pixel_unshuffle channel_shuffle scaled_dot_product_attention multi_head_attention_forward""",
    "Losses": """cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy
        binary_cross_entropy_with_logits kl_div poisson_nll_loss gaussian_nll_loss margin_ranking_loss
        hinge_embedding_loss cosine_embedding_loss triplet_margin_loss soft_margin_loss multi_margin_loss
        multilabel_margin_loss multilabel_soft_margin_loss ctc_loss""",
}

# Not under this name, or not as a function of the library: what to write instead. What stands in backquotes first is
# looked up in the headers.
ELSEWHERE = {
    "real": "the member `Complex::real`", "imag": "the member `Complex::imag`",
    "fft.fft2": "`fft::fftn(x, {-2, -1})`", "fft.ifft2": "`fft::ifftn(x, {-2, -1})`",
    "fft.rfft2": "`fft::fftn(fft::rfft(x), {-2})`", "fft.irfft2": "`fft::irfft(fft::ifftn(x, {-2}))`",
    "stft": "`fft::stft(x, {.n_fft = 400}, window)`: StftOptions has n_fft, hop_length (0: n_fft / 4), center, pad_mode, normalized and onesided. win_length is how long the window is",
    "istft": "`fft::istft(z, {.n_fft = 400}, window, length)`: samples over which no window reaches are NaN or infinite",
    "hann_window": "`fft::hann_window(g, n)`: the graph comes first",
    "hamming_window": "`fft::hamming_window(g, n)`", "blackman_window": "`fft::blackman_window(g, n)`",
    "bartlett_window": "`fft::bartlett_window(g, n)`",
    "tensor": "`Context::set()`, `Session::tensor<...>().set()`: numbers are given when a program runs",
    "from_numpy": "`read_npy()`, `read_npz()`",
    "rand": "`Random::uniform()`",
    "randn": "`Random::normal()`",
    "randint": "`Random::randint()`",
    "randperm": "`Random::permutation()`",
    "normal": "`Random::normal()`",
    "bernoulli": "`Random::bernoulli()`",
    "multinomial": "`Random::categorical()`, of logits and with replacement: one number a row",
    "manual_seed": "the seed of a `Random`, which is part of the graph",
    "view": "`Tensor::view()`, a method; it never fails for its strides. With a dtype `bitcast()`, to one of the same size",
    "contiguous": "not needed: views cost nothing, and kernels copy what they need contiguous",
    "clone": "not needed: tensors never change",
    "repeat": "`repeat()`, a method in torch",
    "unfold": "`Tensor::unfold()` of one axis, a method; torch.nn.functional.unfold is `im2col`",
    "subtract": "`sub()` or -", "multiply": "`mul()` or *", "divide": "`div()` or /", "true_divide": "`div()` or /",
    "negative": "`neg()` or -", "absolute": "`abs()`",
    "msort": "`sort(x, 0)`",
    "equal": "`all(eq(a, b))`",
    "dropout": "`Random::dropout()`, nn::Dropout",
    "rrelu": "`nn::RReLU`",
    "alpha_dropout": "`nn::AlphaDropout`",
    "dropout1d": "`nn::Dropout1d`", "dropout2d": "`nn::Dropout2d`", "dropout3d": "`nn::Dropout3d`",
    "bilinear": "`nn::Bilinear`",
    "lp_pool1d": "`lp_pool()`, by rank", "lp_pool2d": "`lp_pool()`, by rank",
    "max_unpool1d": "`max_unpool()`, by rank", "max_unpool2d": "`max_unpool()`, by rank", "max_unpool3d": "`max_unpool()`, by rank",
}
NORM = "`norm` is an enum: fft::Norm::Backward, Ortho or Forward"
SHIFT = "the axes are given"
POOL = "integers give f32; torch truncates"
KEEPS = "integers stay integers; torch raises an error"
# There, and not quite the same.
DIFFERS = {
    "zeros": "the graph comes first, as in `zeros(g, {2, 3})` or `zeros(x, {2, 3})`",
    "ones": "the graph comes first", "empty": "the graph comes first; it is zeros", "full": "the graph comes first; f32 unless a dtype is given",
    "arange": "the graph comes first, as in `arange(x, 10)`; one number may be symbolic",
    "linspace": "the graph comes first", "logspace": "the graph comes first", "eye": "the graph comes first",
    "tril_indices": "the graph comes first", "triu_indices": "the graph comes first",
    "squeeze": "the method `x.squeeze(axis)` is an Error for an extent that is not 1; the function leaves it, as torch does",
    "nonzero": "`capacity` rows and a count, because sizes are known before a run",
    "argwhere": "`capacity` rows and a count", "masked_select": "`capacity` elements and a count",
    "unique": "`capacity` elements and a count; always sorted; with `dim`, `unique_dim`",
    "any": "u8 gives bool", "all": "u8 gives bool",
    "gather": "an index out of range reads 0; an Error in checked programs and in verify()",
    "index_add": "an index out of range writes nothing; an Error in checked programs",
    "index_copy": "an index out of range writes nothing; an Error in checked programs",
    "index_put": "an index out of range writes nothing; an Error in checked programs",
    "index_fill": "an index out of range writes nothing; an Error in checked programs",
    "scatter_reduce": "an index out of range writes nothing; an Error in checked programs",
    "take": "an index out of range reads 0; an Error in checked programs",
    "take_along_dim": "an index out of range reads 0; an Error in checked programs",
    "cross_entropy": "a class out of range gives NaN; an Error in checked programs",
    "nll_loss": "a class out of range gives NaN; an Error in checked programs",
    "index_select": "an index out of range reads 0; an Error in checked programs",
    "scatter": "an index out of range writes nothing; an Error in checked programs",
    "scatter_add": "an index out of range writes nothing; an Error in checked programs",
    "embedding": "an id out of range gives zeros; an Error in checked programs; there is no max_norm",
    "one_hot": "`num_classes` is needed; an id out of range gives zeros; an Error in checked programs",
    "std": "with `using namespace lc` write lc::std(x), or stddev(x)",
    "max": "of an axis it gives {values, indices}, as torch does", "min": "of an axis it gives {values, indices}",
    "softshrink": "NaN stays NaN; torch gives 0; " + KEEPS,
    "interpolate": "a size or scale_factor; `resize()` (ops/vision/resize.h) has ONNX's modes", "pad": "also of one axis: pad(x, axis, before, after)",
    "scaled_dot_product_attention": "is_causal and a mask together; a row that may attend to nothing is NaN; dropout needs a Random (AttentionOptions)",
    "batch_norm": "training moves running statistics that are inputs of the graph, once a run",
    "instance_norm": "running statistics as in batch_norm",
    "embedding_bag": "see nn::EmbeddingBag for the layer",
    "where": "three operands; nonzero() has a capacity; a condition of another type than bool is true where it is not 0",
    "multi_head_attention_forward": "the header says what is left out",
    "grid_sample": "the header says what differs",
    "complex": "a pair of real tensors, `Complex`: there is no complex element type",
    "conj": "of a Complex alone", "angle": "of a Complex alone", "polar": "gives a Complex",
    "view_as_real": "a new array of both parts", "view_as_complex": "gives a Complex",
    "fft.fft": NORM + "; of a Complex (`fft::rfft` takes real numbers)", "fft.ifft": NORM + "; of a Complex",
    "fft.rfft": NORM, "fft.irfft": NORM,
    "fft.fftn": NORM + "; of a Complex; the axes are given, there is no `s`", "fft.ifftn": NORM + "; of a Complex; the axes are given, there is no `s`",
    "fft.fftshift": SHIFT, "fft.ifftshift": SHIFT,
    "fft.fftfreq": "the graph comes first; f32", "fft.rfftfreq": "the graph comes first; f32",
    "avg_pool1d": POOL, "avg_pool2d": POOL, "avg_pool3d": POOL,
    "adaptive_avg_pool1d": KEEPS, "adaptive_avg_pool2d": KEEPS, "adaptive_avg_pool3d": KEEPS,
    "leaky_relu": KEEPS, "hardshrink": KEEPS,
}
# Which element types are taken where torch raises an error: each is added to what the name's note says.
PROMOTES = """matmul mm bmm mv dot vdot inner addmm addmv baddbmm addbmm chain_matmul tensordot einsum cross cdist cholesky_solve
    linalg.solve linalg.lstsq linalg.multi_dot linalg.cross linalg.vecdot linear lerp complex scaled_dot_product_attention
    binary_cross_entropy"""
FLOATS = """softmax softmin log_softmax gelu silu mish softplus elu selu celu glu logsigmoid hardsigmoid hardswish layer_norm rms_norm
    group_norm instance_norm normalize cosine_similarity mean var var_mean std std_mean norm logcumsumexp logaddexp logaddexp2 hypot
    lerp cdist linalg.vector_norm linalg.matrix_norm"""
TAKES = {}
for names, note in ((PROMOTES, "different element types are promoted"), (FLOATS, "integers give f32")):
    for name in names.split():
        TAKES.setdefault(name, []).append(note)
for name, notes in TAKES.items():
    said = " and ".join(notes) + "; torch raises an error"
    DIFFERS[name] = DIFFERS[name] + "; " + said if name in DIFFERS else said

# What stands above the rows of a group.
FOREWORD = {
    "Complex numbers and Fourier transforms": """`Complex` (`lightcone/ops/complex/complex.h`) is a pair of real tensors of one shape, f32 or f64: `{real, imag}`. It has:

- arithmetic: `+ - * /` between two of them, or with a real tensor or a number; unary `-`, `reciprocal`, `matmul`, `eq`, `where`, and `full_like(z, {0, 1})` for other numbers;
- views as methods: `reshape`, `expand`, `permute`, `transpose`, `unsqueeze`, `squeeze`, `slice`, `select`, `z[i]` and `flip`;
- `cat`, `stack`, `sum`, `mean` and `cumsum`;
- functions: `exp`, `expm1`, `log`, `log1p`, `sqrt`, `rsqrt`, `pow(z, w)`, `sigmoid`, `sgn`, `sin`, `cos`, `tan`, `sinh`, `cosh`, `tanh` and the inverses of these six;
- parts: `abs`, `angle`, `conj`, `view_as_real`, and those in the table.

No other function takes one. `each` applies another function to both parts: `z.each([](const Tensor& part) { return roll(part, 1, 0); })`.
""",
}
MISSING = {
    "isreal": "there is no complex element type",
    "linalg.eig": "its results are complex",
}
LATER = "not yet"


def declared():
    """Functions of namespace lc in the public headers of operations, `linalg.` before those of lc::linalg, and classes."""
    names = set()
    for path in sorted((ROOT / "lightcone/ops").rglob("*.h")):
        if "typed" in path.parts or "internal" in path.name:
            continue
        space = ""
        for text in re.sub(r"//[^\n]*", "", path.read_text()).split("\n"):
            if m := re.match(r"namespace ([\w:]+) \{", text):
                space = m[1]
            elif text.startswith("}  // namespace"):
                space = "lc"
            elif m := re.match(r"using lc::(\w+);", text):
                names.add("linalg." + m[1])
            for m in re.finditer(r"(?:^|\s)(?:[\w:]+(?:<[^()]*>)?[&*]?) (\w+)\((?=[A-Z]|const |std::|int |double |bool )", text):
                if not text.startswith(" ") or "inline" in text:
                    names.add(("linalg." if "linalg" in space else "fft." if space == "lc::fft" else "") + m[1])
    return names


def exists(words, text):
    """Is what the first backquoted words of a note name there?"""
    m = re.match(r"`(\w+::)*(\w+)", words)
    return m is None or re.search(r"\b%s\b" % m[2], text) is not None


def together(notes):
    """Rows of a table: names that have one note stand in one row."""
    rows = {}
    for name, note in notes:
        rows.setdefault(note, []).append("`%s`" % name)
    return ["| %s | %s |" % (", ".join(names), note) for note, names in rows.items()]


def page():
    there = declared()
    headers = "".join(p.read_text() for p in (ROOT / "lightcone").rglob("*.h"))
    wrong, counts, body = [], {"same": 0, "different": 0, "missing": 0}, ""
    known = {n for group in NAMES.values() for n in group.split()}
    for notes in (ELSEWHERE, DIFFERS, MISSING):
        wrong += ["a note about %s, which is not in the table" % n for n in notes if n not in known]
    for group, names in NAMES.items():
        rows = {"same": [], "different": [], "missing": []}
        for n in names.split():
            if n in there and n in DIFFERS:
                rows["different"].append((n, DIFFERS[n]))
            elif n in there and n not in ELSEWHERE:
                rows["same"].append("`%s`" % n)
                if n in MISSING:
                    wrong.append("%s is said to be missing, and is there" % n)
            elif n in ELSEWHERE:
                rows["different"].append((n, ELSEWHERE[n]))
                if not exists(ELSEWHERE[n], headers):
                    wrong.append("the note about %s names what is not there" % n)
            else:
                if n in DIFFERS:
                    wrong.append("%s is said to differ, and is not there" % n)
                rows["missing"].append((n, MISSING.get(n, LATER)))
        for k, r in rows.items():
            counts[k] += len(r)
        body += "\n## %s\n" % group
        if group in FOREWORD:
            body += "\n" + FOREWORD[group]
        if rows["same"]:
            body += "\nSame: %s.\n" % ", ".join(rows["same"])
        for k, title, about in (("different", "different", "what it is here"), ("missing", "missing", "why")):
            if rows[k]:
                body += "\n| %s | %s |\n|---|---|\n%s\n" % (title, about, "\n".join(together(rows[k])))
    head = """# PyTorch's names

This page compares the names of `torch`, `torch.nn.functional` and `torch.linalg` with ours: %d names, of which %d are the same (name,
order of arguments, defaults and meaning), %d differ as noted, and %d are missing. `tools/pytorch_table.py` writes the page from the
public headers, and a test compares the two.

These rules hold everywhere:

- Functions and views make new tensors, and nothing is changed in place: `x += y` names a new tensor. There is no `out=` and no `device=`.
- `dtype` is the last argument. A list of tensors is `{a, b}`.
- Operators take tensors and numbers. The kind of a number decides the type: `i64 * 2.0` is f32.
- Views are methods, too: `x[0]`, `x.t()`, `x.view({-1, 4})`, `x.select()`.
- What computes is a function: `sum(x, 1)`, not `x.sum(1)`; `logical_not(m)`, not `~m`.
- `index(x, {0, Slice(1, -1), Ellipsis, NewAxis})` is `x[0, 1:-1, ..., None]`.
- Layers have `torch.nn`'s names in `lightcone/nn/layers.h`, and optimisers those of `torch.optim` in `lightcone/optim/optim.h`.
""" % (sum(counts.values()), counts["same"], counts["different"], counts["missing"])
    return head + body, counts, wrong


text, counts, wrong = page()
if "--check" in sys.argv:
    if not PAGE.exists() or PAGE.read_text() != text:
        wrong.append("docs/pytorch.md is not what tools/pytorch_table.py writes")
else:
    PAGE.write_text(text)
print(", ".join("%s %d" % kv for kv in counts.items()))
print("\n".join(wrong))
sys.exit(bool(wrong))
