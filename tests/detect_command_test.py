#!/usr/bin/env python3
"""`lightcone detect` prints and draws what a detector finds in pictures and in folders of them, and refuses mistakes.

    detect_command_test.py PATH/TO/lightcone SOURCE_DIRECTORY

The detector is a YOLOv8 whose weights are 0, written here: each cell of the largest stride is an object of the class
"dog" with the score sigmoid(1) = 0.7311, and its box is the cell.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

LIGHTCONE, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
NINE = SOURCE.parent / "shared/data/models/yolov9t"


def run(*args, **kw):
    return subprocess.run([LIGHTCONE, "detect", *map(os.fsencode, args)], capture_output=True, timeout=300, **kw)


def png(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = (b"\0" + bytes(3 * width)) * height
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def detector(folder):
    """A YOLOv8 of two channels everywhere, two classes and two bins for each side of a box."""
    tensors = {}

    def conv(name, out, into, kernel):
        tensors[name + ".conv.weight"] = [out, into, kernel, kernel]
        for part in ("weight", "bias", "running_mean", "running_var"):
            tensors[name + ".bn." + part] = [out]

    for k in (0, 1, 3, 5, 7, 16, 19):
        conv("model.%d" % k, 2, 3 if k == 0 else 2, 3)
    for k in (2, 4, 6, 8, 12, 15, 18, 21):
        conv("model.%d.cv1" % k, 2, 2 if k < 10 else 4, 1)
        conv("model.%d.m.0.cv1" % k, 1, 1, 3)
        conv("model.%d.m.0.cv2" % k, 1, 1, 3)
        conv("model.%d.cv2" % k, 2, 3, 1)
    conv("model.9.cv1", 1, 2, 1)
    conv("model.9.cv2", 2, 4, 1)
    for k in range(3):
        for branch, out in (("cv2", 8), ("cv3", 2)):
            for layer in (0, 1):
                conv("model.22.%s.%d.%d" % (branch, k, layer), 2, 2, 3)
            tensors["model.22.%s.%d.2.weight" % (branch, k)] = [out, 2, 1, 1]
            tensors["model.22.%s.%d.2.bias" % (branch, k)] = [out]
    head, data = {}, b""
    for name, shape in sorted(tensors.items()):
        count = 1
        for n in shape:
            count *= n
        values = [1.0 if name.endswith("running_var") else 0.0] * count
        if ".cv3." in name and name.endswith(".2.bias"):
            values = [-20.0, 1.0 if ".2.2." in name else -20.0]
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * count]}
        data += struct.pack("<%df" % count, *values)
    text = json.dumps(head).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps(
        {"model_type": "yolov8", "id2label": {"0": "cat", "1": "dog"}, "image_size": 64}))


class Detect(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.d = pathlib.Path(kept.name)
        self.model = self.d / "yolo"
        detector(self.model)
        (self.d / "photo.png").write_bytes(png(128, 64))

    def refuses(self, r, *words):
        err = r.stderr.decode(errors="replace")
        self.assertEqual(r.returncode, 1, err)
        self.assertTrue(err.startswith("lightcone: "), err)
        for w in words:
            self.assertIn(w, err)

    def test_boxes_are_in_pixels_of_the_picture(self):
        # 128 x 64 is halved, with bars of 16 above and below: cells of 32 pixels are 64 x 64, half of them in a bar
        r = run(self.d / "photo.png", "--model", self.model, "--size", "64", "--json")
        self.assertEqual(r.returncode, 0, r.stderr)
        said = json.loads(r.stdout)
        self.assertEqual((said["width"], said["height"]), (128, 64))
        self.assertEqual({d["class"] for d in said["detections"]}, {"dog"})
        self.assertEqual({d["score"] for d in said["detections"]}, {0.7311})
        self.assertEqual(sorted(d["box"] for d in said["detections"]),
                         [[0, 0, 64, 32], [0, 32, 64, 64], [64, 0, 128, 32], [64, 32, 128, 64]])

    def test_text_thresholds_and_classes(self):
        r = run(self.d / "photo.png", "--model", self.model, "--size", "64", "--most", "1")
        self.assertEqual(r.stdout.decode(), "dog  0.73  from (0, 0) to (64, 32)\n", r.stderr)
        for flags in (("--confidence", "0.74"), ("--class", "cat")):
            r = run(self.d / "photo.png", "--model", self.model, "--size", "64", *flags)
            self.assertEqual((r.returncode, r.stdout), (0, b"nothing found\n"), r.stderr)

    def frames(self, data, *flags):
        r = run("--model", self.model, "--size", "64", "--json", *flags, input=data)
        return r, [json.loads(line) for line in r.stdout.decode().splitlines()]

    def test_streams_of_files(self):
        (self.d / "drawn").mkdir()
        r = run(self.d / "photo.png", "--model", self.model, "--size", "64", "--draw", self.d / "photo.jpg")
        self.assertEqual(r.returncode, 0, r.stderr)
        jpeg = (self.d / "photo.jpg").read_bytes()
        r, lines = self.frames(jpeg + png(64, 64) + jpeg + png(32, 32), "-", "--draw", self.d / "drawn")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual([(x["frame"], x["width"], x["height"]) for x in lines],
                         [(0, 128, 64), (1, 64, 64), (2, 128, 64), (3, 32, 32)])
        self.assertEqual(sorted(d["box"] for d in lines[2]["detections"]),
                         [[0, 0, 64, 32], [0, 32, 64, 64], [64, 0, 128, 32], [64, 32, 128, 64]])
        self.assertEqual(sorted(x.name for x in (self.d / "drawn").iterdir()), ["frame-%06d.jpg" % k for k in range(4)])

    def test_raw_frames(self):
        r, lines = self.frames(bytes(2 * 3 * 128 * 64), "--frames", "128x64")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertEqual([(x["frame"], len(x["detections"])) for x in lines], [(0, 4), (1, 4)])
        r, lines = self.frames(b"", "--frames", "128x64")
        self.assertEqual((r.returncode, lines), (0, []), r.stderr)

    def test_a_frame_is_answered_before_the_next_comes(self):
        with subprocess.Popen([LIGHTCONE, "detect", "-", "--model", self.model, "--size", "64", "--json"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
            for k in range(2):
                p.stdin.write(png(64, 64))
                p.stdin.flush()
                self.assertEqual(json.loads(p.stdout.readline())["frame"], k)
            p.stdin.close()
            self.assertEqual(p.wait(timeout=60), 0)

    def test_mistakes_in_streams(self):
        self.refuses(self.frames(png(64, 64)[:-4], "-")[0], "frame 0", "the stream ends within it")
        r, lines = self.frames(png(64, 64) + b"GIF89a", "-")
        self.refuses(r, "frame 1", "neither a JPEG nor a PNG", "--frames WIDTHxHEIGHT")
        self.assertEqual(len(lines), 1)
        self.refuses(self.frames(bytes(3 * 128 * 64 + 5), "--frames", "128x64")[0], "frame 1", "ends within it")
        self.refuses(self.frames(b"\xff\xd8\xff\xe0\x00\x01" + bytes(9), "-")[0], "has a length of 1")
        self.refuses(self.frames(b"\xff\xd8abc", "-")[0], "no JPEG from its byte 2")
        # a length of two gigabytes is not believed
        self.refuses(self.frames(png(8, 8)[:8] + b"\x7f\xff\xff\xffIDAT" + bytes(99), "-")[0], "more than 256 MB")
        self.refuses(self.frames(b"", "-", self.d / "photo.png")[0], "no other picture")
        self.refuses(self.frames(b"", "-", "--draw", "found.png")[0], "is no folder")

    def test_folders_and_drawings(self):
        folder = self.d / "pictures"
        folder.mkdir()
        for name, size in (("a.png", (64, 64)), ("b.png", (32, 32))):
            (folder / name).write_bytes(png(*size))
        (self.d / "drawn").mkdir()
        r = run(folder, "--model", self.model, "--size", "64", "--json", "--draw", self.d / "drawn")
        self.assertEqual(r.returncode, 0, r.stderr)
        lines = [json.loads(line) for line in r.stdout.decode().splitlines()]
        self.assertEqual([pathlib.Path(x["file"]).name for x in lines], ["a.png", "b.png"])
        self.assertEqual(sorted(d["box"] for d in lines[1]["detections"]),
                         [[0, 0, 16, 16], [0, 16, 16, 32], [16, 0, 32, 16], [16, 16, 32, 32]])
        for name in ("a.png", "b.png"):
            drawn = (self.d / "drawn" / name).read_bytes()
            self.assertTrue(drawn.startswith(b"\x89PNG"))
            self.assertNotEqual(drawn, (folder / name).read_bytes())
        r = run(self.d / "photo.png", "--model", self.model, "--size", "64", "--draw", self.d / "one.jpg")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertTrue((self.d / "one.jpg").read_bytes().startswith(b"\xff\xd8"))

    def test_mistakes(self):
        photo = self.d / "photo.png"
        self.refuses(run(photo, "--model", self.model, "--size", "64", "--class", "dig"), "no class 'dig'", "dog")
        self.refuses(run(photo, "--model", self.model, "--size", "72"), "multiples of the largest stride")
        self.refuses(run(photo, "--model", self.model, "--size", "big"), "--size")
        self.refuses(run(photo, "--model", self.model, "--draw", "x.gif"), "--draw writes .png and .jpg")
        self.refuses(run(photo, photo, "--model", self.model, "--draw", "x.png"), "there are several pictures")
        self.refuses(run(self.d / "none.png", "--model", self.model, "--size", "64"), "none.png")
        (self.d / "empty").mkdir()
        self.refuses(run(self.d / "empty", "--model", self.model), "there are no .jpg and .png files")
        self.refuses(run(photo, "--model", photo), "photo.png")

    @unittest.skipUnless((NINE / "yolov9t.pt").exists(), "shared/data/models/yolov9t is absent")
    def test_a_pickled_yolo(self):
        r = run(NINE / "image.jpg", "--model", NINE / "yolov9t.pt", "--confidence", "0.06", "--json")
        self.assertEqual(r.returncode, 0, r.stderr)
        found = json.loads(r.stdout)["detections"]
        self.assertEqual([d["class"] for d in found], ["ball"])
        for got, want in zip(found[0]["box"], (113.565, 391.408, 143.662, 425.508), strict=True):
            self.assertAlmostEqual(got, want, delta=0.1)  # Ultralytics' predict says so


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
