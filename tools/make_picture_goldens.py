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


def main():
    lines = []

    def file(name, data):
        rgb = Image.open(io.BytesIO(data)).convert("RGB")
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
