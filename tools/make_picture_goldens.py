#!/usr/bin/env python3
"""Writes tests/goldens/pictures.txt: small pictures as files of every kind and what Pillow makes of them.

  make_picture_goldens.py    (needs Pillow; written with 13.0.0)

Each line is a kind and its fields:
  file NAME HEX WIDTH HEIGHT HEX          the file's bytes, and those of its pixels, red, green and blue, row by row
  resize WIDTH HEIGHT TO_WIDTH TO_HEIGHT HEX HEX    grey pixels before and behind Image.resize(..., BILINEAR)
"""
import io
import pathlib
import random
import struct
import zlib

from PIL import Image

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "goldens" / "pictures.txt"


def picture(mode, width, height, seed):
    draw = random.Random(seed)
    channels = len(mode)
    smooth = [[draw.randrange(256) for _ in range(channels)] for _ in range(4)]
    pixels = bytearray()
    for y in range(height):
        for x in range(width):
            a, b = x / width, y / height
            for c in range(channels):
                corner = [s[c] for s in smooth]
                v = (corner[0] * (1 - a) + corner[1] * a) * (1 - b) + (corner[2] * (1 - a) + corner[3] * a) * b
                pixels.append(max(0, min(255, int(v) + draw.randrange(-9, 10))))
    return Image.frombytes(mode, (width, height), bytes(pixels))


def saved(image, kind, **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by PNG's number of the kind of colours
DEPTHS = {0: [1, 2, 4, 8, 16], 2: [8, 16], 3: [1, 2, 4, 8], 4: [8, 16], 6: [8, 16]}
PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def packed(samples, depth):
    bits = "".join(format(v, "0%db" % depth) for v in samples)
    bits += "0" * (-len(bits) % 8)
    return b"\0" + bytes(int(bits[k:k + 8], 2) for k in range(0, len(bits), 8))


def png(kind, depth, interlaced, draw):
    """A PNG of any kind, with chunks that say how its colours are meant and what is transparent."""
    width, height, channels, top = 6, 5, CHANNELS[kind], (1 << depth) - 1
    palette = draw.randrange(2, top + 2) if kind == 3 else 0
    largest = palette - 1 if palette else top
    rows = [[draw.choice([0, largest, largest // 2 + 1, draw.randrange(largest + 1)]) for _ in range(width * channels)]
            for _ in range(height)]
    data = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced))
    data += chunk(b"gAMA", struct.pack(">I", draw.choice([45455, 100000, 22727])))
    data += chunk(b"cHRM", struct.pack(">8I", *[draw.randrange(1, 90000) for _ in range(8)]))
    data += draw.choice([b"", chunk(b"sRGB", b"\0"), chunk(b"iCCP", b"p\0\0" + zlib.compress(b"no profile"))])
    if palette:
        data += chunk(b"PLTE", bytes(draw.randrange(256) for _ in range(3 * palette)))
        data += chunk(b"tRNS", bytes(draw.randrange(256) for _ in range(draw.randrange(1, palette + 1))))
    elif kind in (0, 2) and interlaced:
        data += chunk(b"tRNS", struct.pack(">%dH" % channels, *rows[0][:channels]))
    pixels = b""
    for x, y, dx, dy in PASSES if interlaced else [(0, 0, 1, 1)]:
        if x < width:
            for row in rows[y::dy]:
                pixels += packed([v for k in range(x, width, dx) for v in row[k * channels:(k + 1) * channels]], depth)
    return b"\x89PNG\r\n\x1a\n" + data + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")


def in_rgb(data):
    image = Image.open(io.BytesIO(data))
    if image.mode != "I;16":
        return image.convert("RGB")
    # Pillow cuts grey of 16 bits off at 255; of colours of 16 bits it takes the upper byte, and so do we of both.
    upper = bytes(v >> 8 for v, in struct.iter_unpack("<H", image.tobytes()))
    return Image.frombytes("L", image.size, upper).convert("RGB")


def main():
    lines = []

    def file(name, data):
        rgb = in_rgb(data)
        lines.append("file %s %s %d %d %s" % (name, data.hex(), rgb.width, rgb.height, rgb.tobytes().hex()))

    rgb, grey, rgba = picture("RGB", 19, 13, 1), picture("L", 7, 9, 2), picture("RGBA", 8, 5, 3)
    file("jpeg_444", saved(rgb, "JPEG", quality=90, subsampling=0))
    file("jpeg_420", saved(rgb, "JPEG", quality=75, subsampling=2))
    file("jpeg_progressive", saved(rgb, "JPEG", quality=80, progressive=True, subsampling=0))
    file("jpeg_grey", saved(grey, "JPEG", quality=85))
    file("png_rgb", saved(rgb, "PNG"))
    file("png_grey", saved(grey, "PNG"))
    file("png_rgba", saved(rgba, "PNG"))
    file("png_palette", saved(rgb.quantize(17), "PNG"))
    file("png_bits", saved(grey.convert("1"), "PNG"))
    draw = random.Random(5)
    for kind, depths in DEPTHS.items():
        for depth in depths:
            for interlaced in (0, 1):
                file("png_%d_%d_%d" % (kind, depth, interlaced), png(kind, depth, interlaced, draw))
    data = saved(picture("CMYK", 8, 8, 4), "JPEG")
    lines.append("file jpeg_cmyk %s 8 8 -" % data.hex())
    for seed, (size, to) in enumerate([((19, 13), (7, 5)), ((7, 9), (20, 30)), ((16, 16), (16, 4)), ((40, 3), (5, 3)),
                                       ((1, 1), (3, 2)), ((31, 17), (30, 18))]):
        before = picture("L", *size, 10 + seed)
        behind = before.resize(to, Image.Resampling.BILINEAR)
        lines.append("resize %d %d %d %d %s %s" % (*size, *to, before.tobytes().hex(), behind.tobytes().hex()))
    OUT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
