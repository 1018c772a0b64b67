#!/usr/bin/env python3
"""Writes tests/goldens/tokenizers.json: what Hugging Face's tokenizers and Google's sentencepiece make of texts, with
tokenizer.json and tokenizer.model files of random components over small vocabularies. tests/io/tokenizer_test.cpp compares.

    make_tokenizer_goldens.py > tests/goldens/tokenizers.json    # made with tokenizers 0.23.3, sentencepiece 0.2.3
    make_tokenizer_goldens.py SEED COUNT > more.json             # others: LIGHTCONE_TOKENIZER_GOLDENS=more.json tokenizer_test

A line holds one file: its text ("json", or "model" in base64), and for each text the ids with special tokens, without
them, and with special tokens of the text as plain text ("ids", "plain", "spelled"), and what the first are decoded to. Some
rows have a second text: "encoding" is the ids, type ids and attention mask of the pair.
"""
import base64
import io
import json
import os
import random
import subprocess
import sys
import tempfile

import sentencepiece
import sentencepiece.sentencepiece_model_pb2 as proto
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

R = random.Random(0)
FRAGMENTS = [
    "a", "b", "e", "Hello", "world", "the", " ", " ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", "'s", "'T", "don't", "1", "23", "4567", "٣", "½", "²",
    "é", "e\u0301", "İ", "ß", "Σ", "ﬁ", "①", "Ａ", "ｶﾞ", "한국", "\u1112\u1161\u11ab", "你好", "，", "日本語", "カタカナ", "ー", "😀", "👩‍👩‍👧", "🇩🇪",
    "\u200b", "\u00a0", "\u3000", "\u2028", "\u0085", "\u00ad", "\ufeff", "\x01", "\u0300", "▁", "▁▁", "_", "-", "—", "...", "?!", "(x)", "[Y]", "`",
    "$", "+", "<", "|", "~", "##", "«q»", "“w”", "ไทย", "مرحبا", "हिन्दी", "Ω", "жЖ", "𝔘", "\ufffd", "<s>", "</s>", "[MASK]", "<tool>", "tool",
    " <tool> ", "n't", " do not", "<0x0A>", "<0xE2>", "://a.b/c?d=e", "\u1e9b\u0323"]
PATTERNS = [
    r"\s", r"\s+", r"\p{L}+", r"\p{N}{1,3}", r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"(?i:'s|'t|'re)|\w+|\W", r"[a-e]|\d", r"\b", r"\p{Han}+", r"x*", r"[[:punct:]]+", r"^.", r".$", r"[\p{L}&&[^a-e]]+", r"(?<=a)\p{P}", r"\h{2}",
    r"a{,2}b", r"\p{^L}+", r"[^\W\d_]+"]
BEHAVIORS = ["removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous"]


def text():
    return "".join(R.choice(FRAGMENTS) for _ in range(R.choice([0, 1, 2, 3, 5, 8, 13])))


CORPUS = [text() for _ in range(120)] + ["the quick brown fox. Hello world, hello the world! don't do that; 123 456"] * 3


def charsmap():
    """A small table, made by sentencepiece from rules of our own."""
    rules = os.path.join(tempfile.mkdtemp(), "rules.tsv")
    with open(rules, "w") as f:
        for source, target in [("ｶﾞ", "ガ"), ("①", "1"), ("Ａ", "A"), ("　", " "), ("\u00a0", " "), ("ﬁ", "fi"), ("é", "é"), ("é", "e"), ("\u200b", "")]:
            f.write("%s\t%s\n" % (" ".join("%X" % ord(c) for c in source), " ".join("%X" % ord(c) for c in target)))
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(["a b"]), model_writer=model, vocab_size=8, normalization_rule_tsv=rules, model_type="char",
                                             hard_vocab_limit=False, minloglevel=2)
    m = proto.ModelProto()
    m.ParseFromString(model.getvalue())
    return m.normalizer_spec.precompiled_charsmap


CHARSMAP = charsmap()


def sequence(kind, members, within):
    return kind.Sequence([within() for _ in range(R.randrange(0, 4))])


def normalizer(nested=False):
    n = normalizers
    made = [n.NFC, n.NFD, n.NFKC, n.NFKD, n.Lowercase, n.StripAccents, n.Nmt, n.ByteLevel,
            lambda: n.BertNormalizer(R.random() < .5, R.random() < .5, R.choice([None, True, False]), R.random() < .5),
            lambda: n.Strip(R.random() < .5, R.random() < .5), lambda: n.Prepend(R.choice(["▁", " ", "ab"])),
            lambda: n.Replace(R.choice([" ", "a", "  ", "é"]), R.choice(["▁", "", "bb"])), lambda: n.Replace(Regex(R.choice(PATTERNS)), R.choice(["▁", "", "x "])),
            lambda: n.Precompiled(CHARSMAP), lambda: n.NFC() if nested else sequence(n, None, lambda: normalizer(True))]
    return R.choice(made)()


def pre_tokenizer(nested=False):
    p = pre_tokenizers
    made = [p.BertPreTokenizer, p.Whitespace, p.WhitespaceSplit, p.UnicodeScripts, lambda: p.ByteLevel(R.random() < .5, True, R.random() < .5),
            lambda: p.Punctuation(R.choice(BEHAVIORS)), lambda: p.Digits(R.random() < .5), lambda: p.CharDelimiterSplit(R.choice(" a▁-")),
            lambda: p.Metaspace(R.choice("▁▁_a"), R.choice(["always", "first", "never"]), R.random() < .6),
            lambda: p.Split(Regex(R.choice(PATTERNS)), R.choice(BEHAVIORS), R.random() < .4),
            lambda: p.Split(R.choice([" ", "a", "ab", "."]), R.choice(BEHAVIORS), R.random() < .4), lambda: p.FixedLength(R.randrange(1, 7)),
            lambda: p.Digits(True) if nested else sequence(p, None, lambda: pre_tokenizer(True))]
    return R.choice(made)()


def decoder(nested=False):
    d = decoders
    made = [d.ByteLevel, d.ByteFallback, d.Fuse, lambda: d.WordPiece(R.choice(["##", "a"]), R.random() < .5),
            lambda: d.Metaspace(R.choice("▁_"), R.choice(["always", "first", "never"])), lambda: d.BPEDecoder(R.choice(["</w>", "a"])),
            lambda: d.Strip(R.choice(" ▁a"), R.randrange(3), 0), lambda: d.Replace(R.choice(["▁", " ", "a"]), R.choice([" ", "", "_"])),
            lambda: d.Replace(Regex(R.choice(PATTERNS)), R.choice([" ", "_"])), lambda: d.CTC(R.choice(["<pad>", "a"]), R.choice("| "), R.random() < .5),
            lambda: d.Fuse() if nested else sequence(d, None, lambda: decoder(True))]
    return R.choice(made)()


def model():
    """A model without tokens, and what trains it."""
    kind = R.choice(["bpe", "bpe", "wordpiece", "unigram", "wordlevel"])
    bytes_ = ["<0x%02X>" % b for b in range(256)]
    if kind == "bpe":
        fallback, prefix, suffix = R.random() < .3, R.choice([None, None, "##"]), R.choice([None, None, "</w>"])
        m = models.BPE(unk_token=R.choice([None, "<unk>"]), continuing_subword_prefix=prefix, end_of_word_suffix=suffix, fuse_unk=R.random() < .5,
                       byte_fallback=fallback, ignore_merges=R.random() < .3)
        more = {k: v for k, v in [("continuing_subword_prefix", prefix), ("end_of_word_suffix", suffix)] if v}
        return m, trainers.BpeTrainer(vocab_size=180 + 256 * fallback, special_tokens=["<unk>"] + bytes_ * fallback, limit_alphabet=60, show_progress=False, **more)
    if kind == "wordpiece":
        return models.WordPiece(unk_token="<unk>", max_input_chars_per_word=R.choice([100, 5])), trainers.WordPieceTrainer(
            vocab_size=180, special_tokens=["<unk>"], limit_alphabet=60, show_progress=False)
    if kind == "unigram":
        return models.Unigram(), trainers.UnigramTrainer(vocab_size=180, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False)
    return models.WordLevel(unk_token="<unk>"), trainers.WordLevelTrainer(vocab_size=120, special_tokens=["<unk>"], show_progress=False)


def post_processor(tokens):
    token = lambda: R.choice(tokens)
    if R.random() < .4:
        return R.choice([processors.BertProcessing, processors.RobertaProcessing])(token(), token())
    some = [t for t in (token() for _ in range(4)) if t[0].isalnum()]
    if not some:
        return processors.ByteLevel()
    single = [t for t, _ in some if R.random() < .5] + ["$A"] + [t for t, _ in some if R.random() < .5]
    template = processors.TemplateProcessing(single=single, pair=single + ["$B:1"], special_tokens=some)
    return R.choice([template, processors.Sequence([template, processors.ByteLevel()])])


def tokenizer():
    m, trainer = model()
    t = Tokenizer(m)
    if R.random() < .8:
        t.normalizer = normalizer()
    if R.random() < .85:
        t.pre_tokenizer = pre_tokenizer()
    t.train_from_iterator(R.sample(CORPUS, 30), trainer)
    contents = ["<s>", "</s>", "[MASK]", "<tool>", "tool", "Hello", "é", "İ", "\n\n", "a", "the ", "ﬁ", "ool", "<0x0A>"]
    t.add_tokens([AddedToken(c, single_word=R.random() < .3, lstrip=R.random() < .4, rstrip=R.random() < .4, normalized=R.random() < .5, special=R.random() < .5)
                  for c in R.sample(contents, R.randrange(0, 5))])
    if R.random() < .8:
        t.decoder = decoder()
    ids = sorted(t.get_vocab().items(), key=lambda item: item[1])
    if R.random() < .6:
        t.post_processor = post_processor(ids)
    if R.random() < .2:
        t.enable_truncation(R.randrange(6, 12), direction=R.choice(["left", "right"]))
    if R.random() < .2:
        t.enable_padding(direction=R.choice(["left", "right"]), pad_id=R.randrange(len(ids)), length=R.choice([None, 6, 20]), pad_to_multiple_of=R.choice([None, 4]))
    return t.to_str()


def of_tokenizers():
    file = tokenizer()
    t = Tokenizer.from_str(file)
    rows = []
    for x in [text() for _ in range(8)]:
        row = {"text": x}
        for name, specials, spelled in [("ids", True, False), ("plain", False, False), ("spelled", False, True)]:
            t.encode_special_tokens = spelled
            row[name] = t.encode(x, add_special_tokens=specials).ids
        row["decoded"] = t.decode(row["ids"])
        rows.append(row)
    for row, x in zip(rows[:3], [text() for _ in range(3)]):
        t.encode_special_tokens = False
        e = t.encode(row["text"], x)
        row["pair"], row["encoding"] = x, [e.ids, e.type_ids, e.attention_mask]
    return {"json": file, "rows": rows}


def of_sentencepiece():
    model_file = io.BytesIO()
    kind = R.choice(["unigram", "bpe", "bpe", "char", "word"])
    symbols = R.sample(["<tool>", "tool", "Hello", "é", "  ", "▁▁", "a", "the", "ab"], R.randrange(0, 3))
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([x.replace("\n", " ") for x in R.sample(CORPUS, 60)]), model_writer=model_file, vocab_size=160 if kind != "char" else 60, model_type=kind,
        normalization_rule_name="identity", hard_vocab_limit=False, minloglevel=2, character_coverage=.8, byte_fallback=R.random() < .2, user_defined_symbols=symbols,
        control_symbols=["<c>"], add_dummy_prefix=R.random() < .7, remove_extra_whitespaces=R.random() < .5, treat_whitespace_as_suffix=R.random() < .3,
        unk_surface=R.choice([" ⁇ ", "?"]))
    m = proto.ModelProto()
    m.ParseFromString(model_file.getvalue())
    for piece in m.pieces:  # some that are not to be used
        if piece.type == 1 and R.random() < .1:
            piece.type = 5
    if R.random() < .5:
        m.normalizer_spec.precompiled_charsmap = CHARSMAP
    del m.trainer_spec.input[:]
    file = m.SerializeToString()
    p = sentencepiece.SentencePieceProcessor(model_proto=file)
    rows = [{"text": x, "spelled": p.encode(x), "decoded": p.decode(p.encode(x))} for x in [text() for _ in range(8)]]
    return {"model": base64.b64encode(file).decode(), "rows": rows}


def one(seed):
    R.seed(seed)
    make = of_sentencepiece if seed % 5 == 4 else of_tokenizers
    print(json.dumps(make(), ensure_ascii=True, separators=(",", ":")))


def main(seed, count):
    """Each file by a process of its own: the libraries panic, or never come back, for some."""
    made = 0
    while made < count:
        try:
            run = subprocess.run([sys.executable, __file__, "one", str(seed)], capture_output=True, timeout=10, env={**os.environ, "TOKENIZERS_PARALLELISM": "false"})
            if run.returncode == 0:
                sys.stdout.buffer.write(run.stdout)
                made += 1
        except subprocess.TimeoutExpired:
            pass
        seed += 1


if sys.argv[1:2] == ["one"]:
    one(int(sys.argv[2]))
else:
    main(*map(int, sys.argv[1:3] if len(sys.argv) > 2 else (1, 60)))
