// Readers of data sets: IDX (MNIST), CIFAR's binary batches, NumPy's .npy and .npz. CSV is in csv.h, texts in text.h.
//
// Any bytes lead to arrays or an Error that states what is wrong: sizes, counts and types are checked against the
// available bytes before memory is allocated. The memory of the values counts against ReadOptions::memory; its default
// here is 32 MB plus 16 bytes per byte of the file, so a compressed file that unpacks to more needs a larger limit.
// Each reader takes a path or, as a MappedFile, bytes in memory.
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

// Reads an IDX file, plain or gzip-compressed (recognised by its first bytes), of type u8, i8, i16, i32, f32 or f64.
// The format is described at http://yann.lecun.com/exdb/mnist and read as in torchvision.
Array read_idx(const std::string& path, const ReadOptions& o = {});
// The same for bytes in memory.
Array read_idx(const MappedFile& file, const ReadOptions& o = {});

// Reads MNIST and similar data sets from two IDX files: "image" u8 [n, height, width] and "label" i64 [n]. Throws Error
// if the numbers of labels and images differ, or if a label is not below `classes`.
Dataset read_mnist(const std::string& images, const std::string& labels, std::int64_t classes = 10,
                   const ReadOptions& o = {});

// Reads CIFAR-10's binary batches (https://www.cs.toronto.edu/~kriz/cifar.html) in the given order: "image" u8
// [n, 3, 32, 32] and "label" i64 [n], below 10.
Dataset read_cifar10(std::span<const std::string> paths, const ReadOptions& o = {});
// The same for one batch in memory.
Dataset read_cifar10(const MappedFile& file, const ReadOptions& o = {});
// Reads CIFAR-100's binary files: "image", "label" (fine, below 100) and "coarse_label" (below 20).
Dataset read_cifar100(const std::string& path, const ReadOptions& o = {});
// The same for bytes in memory.
Dataset read_cifar100(const MappedFile& file, const ReadOptions& o = {});

// Reads a .npy file of version 1, 2 or 3 (numpy/lib/format.py), big- or little-endian, in C's or Fortran's order. f2,
// f4, f8, b1, i1 to i8 and u1 to u8 keep their types; c8 and c16 become f32 and f64 with a last axis of two. Throws
// Error for all other types: objects (pickles), texts and records.
Array read_npy(const std::string& path, const ReadOptions& o = {});
// The same for bytes in memory.
Array read_npy(const MappedFile& file, const ReadOptions& o = {});

// Reads a .npz archive of stored or deflated members. The names of the arrays are without ".npy". Throws Error if two
// members have the same name, overlap or unpack to another size than stated, if a checksum is wrong, or if a member is
// not a .npy.
Arrays read_npz(const std::string& path, const ReadOptions& o = {});
// The same for bytes in memory.
Arrays read_npz(const MappedFile& file, const ReadOptions& o = {});

}  // namespace lc
