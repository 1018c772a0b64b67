#!/usr/bin/env python3
"""Writes tests/goldens/unigram.json: small Unigram models, trained on the text below, and what Google's sentencepiece makes
of texts with them. tests/io/unigram_test.cpp compares, from tokenizer.model and from the same model as a GGUF file.

    make_unigram_goldens.py > tests/goldens/unigram.json    # made with sentencepiece 0.2.3

A line holds one model: its bytes ("model", base64), the fields of a GGUF file, and rows of a text, its ids and what they are
decoded to. "long" is the number of ids of a text without spaces that long_text() makes, and a hash of them.
"""
import base64
import io
import json
import os
import tempfile

import sentencepiece
import sentencepiece.sentencepiece_model_pb2 as proto

TEXT = """
The harbour lies north of the old town, and every morning the boats come in with herring, cod and news. My grandmother sold
bread there for thirty years. She knew the names of all the boats, of most of the sailors, and of none of the gulls, who took
what they wanted and did not pay. When the fog stood on the water she rang a bell, one stroke a minute, and the boats found
the pier by the sound. "A bell is a small thing," she said, "until nobody rings it."
In winter the harbour froze. Then the sailors mended nets in the long shed beside the church, drank tea, and told stories:
how the Marie went down in 1871 with nine men, how the tenth came home on a door, how he never opened a door again without
saying thank you. The children listened and mended nothing. We counted the ships that were waiting beyond the ice, 12 or 15 of
them, and guessed what they carried: coal, timber, oranges. Once a ship brought an elephant. Nobody believed me, but the
elephant was real; it walked over the ice behind its keeper, slowly, testing each step, and ate all the bread we had.
Now the boats are fewer and the bell hangs in a museum. The gulls have stayed. They walk along the pier, look into the nets,
and complain in the voices of people who remember better years. Ça va, says the Frenchman who paints them: ça va, ça va.
"""
TEXTS = [
    "", " ", "  ", "The boats", " the  boats ", "The harbour froze in 1871.", "herring, cod and news", "elephant\telephant", "\n", "unwanted", "xylophone", "Ça va", "ça va",
    "C\u0327a", "①② ﬁsh", "你好 boats", "😀", "e\u0301lan", "the <ship> boats", "<ship>", "<ship><ship> a", "a<ship>b", "a <ship> b", "▁the", "the▁boats", "th",
    "\u00a0the\u3000boats", "\u200bthe", "<s>", "</s>", "<unk>", "x<0x41>y", "\x01\x02", "ththththe", "thethethe boatsboats", "1871187118711871", "«bell»", "\ufeffbell", "Ｔｈｅ"]


def charsmap():
    rules = os.path.join(tempfile.mkdtemp(), "rules.tsv")
    with open(rules, "w") as f:
        for source, target in [("①", "1"), ("②", "2"), ("ﬁ", "fi"), ("\u3000", " "), ("\u00a0", " "), ("\u200b", ""), ("C\u0327", "Ç"), ("c\u0327", "ç"), ("\t", " "),
                               ("Ｔ", "T"), ("ｈ", "h"), ("ｅ", "e")]:
            f.write("%s\t%s\n" % (" ".join("%X" % ord(c) for c in source), " ".join("%X" % ord(c) for c in target)))
    return rules


def long_text():
    """30,000 letters: sums of their scores exceed 100,000, beyond which sentencepiece lowers them."""
    state, out = 1, []
    for _ in range(30000):
        state = (state * 1103515245 + 12345) % 2**31
        out.append("thebosandriglwum"[state >> 16 & 15])
    return "".join(out)


def hashed(ids):
    h = 14695981039346656037
    for i in ids:
        h = (h ^ i) * 1099511628211 % 2**64
    return str(h)


def model(**more):
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXT.split("\n")), model_writer=file, model_type="unigram", hard_vocab_limit=False, minloglevel=2,
                                             normalization_rule_tsv=charsmap(), user_defined_symbols=["<ship>"], **more)
    m = proto.ModelProto()
    m.ParseFromString(file.getvalue())
    del m.trainer_spec.input[:]
    p = sentencepiece.SentencePieceProcessor(model_proto=m.SerializeToString())
    n, long = m.normalizer_spec, p.encode(long_text())
    return {"model": base64.b64encode(m.SerializeToString()).decode(), "pieces": [x.piece for x in m.pieces], "scores": [x.score for x in m.pieces],
            "types": [x.type for x in m.pieces], "charsmap": list(n.precompiled_charsmap), "add_space_prefix": n.add_dummy_prefix,
            "remove_extra_whitespaces": n.remove_extra_whitespaces, "treat_whitespace_as_suffix": m.trainer_spec.treat_whitespace_as_suffix,
            "rows": [{"text": x, "ids": p.encode(x), "decoded": p.decode(p.encode(x))} for x in TEXTS], "long": [len(long), hashed(long)]}


for options in [{"vocab_size": 260}, {"vocab_size": 200, "remove_extra_whitespaces": False, "character_coverage": .98},
                {"vocab_size": 440, "byte_fallback": True, "add_dummy_prefix": False}, {"vocab_size": 220, "treat_whitespace_as_suffix": True}]:
    print(json.dumps(model(**options), ensure_ascii=True, separators=(",", ":")))
