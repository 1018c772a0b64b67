// Readers of data sets: IDX (MNIST), CIFAR's binary batches, NumPy's .npy and .npz. (CSV: csv.h, texts: text.h.)
//
// Any bytes give arrays or an Error that says what is wrong with them: sizes, counts and types are checked against the
// bytes that are there before memory is taken for them. The memory of the values counts against ReadOptions::memory
// here, whose default is 32 MB and 16 bytes for each byte of the file: a compressed file that unpacks to more needs a
// larger one. Each takes a path or, as a MappedFile, bytes that are in memory.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "lightcone/io/data/array.h"
#include "lightcone/io/data/dataset.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"

namespace lc {

// One IDX file, plain or compressed with gzip (its first bytes say which). Its types are u8, i8, i16, i32, f32
// and f64. (The format: http://yann.lecun.com/exdb/mnist; as torchvision reads it.)
Array read_idx(const std::string& path, const ReadOptions& o = {});
Array read_idx(const MappedFile& file, const ReadOptions& o = {});

// MNIST and its relatives from two IDX files: "image" u8 [n, height, width] and "label" i64 [n]. Error unless there are
// as many labels as images, and each is below `classes`.
Dataset read_mnist(const std::string& images, const std::string& labels, std::int64_t classes = 10,
                   const ReadOptions& o = {});

// CIFAR-10's binary batches (https://www.cs.toronto.edu/~kriz/cifar.html), one after another: "image"
// u8 [n, 3, 32, 32], "label" i64 [n], below 10.
Dataset read_cifar10(std::span<const std::string> paths, const ReadOptions& o = {});
Dataset read_cifar10(const MappedFile& file, const ReadOptions& o = {});
// CIFAR-100's: "image", "label" (the fine one, below 100) and "coarse_label" (below 20).
Dataset read_cifar100(const std::string& path, const ReadOptions& o = {});
Dataset read_cifar100(const MappedFile& file, const ReadOptions& o = {});

// A .npy of version 1, 2 or 3 (numpy/lib/format.py), big- or little-endian, in C's or Fortran's order. f2, f4, f8, b1,
// i1 to i8 and u1 to u8 stay what they are; c8 and c16 become f32 and f64 with a last axis of two. Error for everything
// else: objects, which are pickles, texts, records.
Array read_npy(const std::string& path, const ReadOptions& o = {});
Array read_npy(const MappedFile& file, const ReadOptions& o = {});

// A .npz, its members stored or deflated, by their names without ".npy". Error when two have one name, when they lie
// upon each other or unpack to more than they say, when a checksum is wrong, and for members that are no .npy.
Arrays read_npz(const std::string& path, const ReadOptions& o = {});
Arrays read_npz(const MappedFile& file, const ReadOptions& o = {});

}  // namespace lc
