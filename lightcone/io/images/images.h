// Reads pictures, JPEG and PNG files and folders of them, and writes them.
//
// Files may be hostile: the size of a picture is checked against ReadOptions::memory before memory is allocated, and a
// file that is damaged, truncated or of another kind is an Error. The decoders are those of libjpeg-turbo and libpng.
// If lightcone::io was built without them, these functions throw an Error that states so.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lightcone/io/data/array.h"
#include "lightcone/io/data/dataset.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"

namespace lc {

// True if the library was built with decoders.
bool can_read_images();

// Reads a picture as u8 [3, height, width] in the order red, green, blue, whatever the format of the file (PIL's
// Image.open(path).convert("RGB"), channels first): grey is repeated, transparency is dropped, and of 16-bit samples
// the upper 8 bits are taken. (Pillow does so for colours and for grey with transparency; for plain 16-bit grey it
// clips larger values to 255, which leaves white pictures.) As in Pillow and torchvision, gamma and colour profiles of
// the file are ignored. Throws Error for a JPEG in CMYK, and for one of more than 500 scans, which would keep a decoder
// busy. Besides the bytes of the result, decoding takes up to three times as many from ReadOptions::memory.
Array read_image(const std::string& path, const ReadOptions& o = {});
// The same for bytes in memory.
Array read_image(const MappedFile& file, const ReadOptions& o = {});

// Writes u8 [3, height, width] (red, green, blue) or [1, height, width] (grey) as a file that appears whole or not at
// all (io/checkpoints/save.h). Throws Error for other arrays, and if the library was built without libjpeg-turbo and
// libpng.
void write_png(const std::string& path, const ArrayView& picture);
// The same as a JPEG of a quality from 1 to 100, with colours at half the resolution (4:2:0) as most programs write.
void write_jpeg(const std::string& path, const ArrayView& picture, int quality = 90);

// Options of read_image_folder() and fitted_image().
struct ImageFolderOptions {
  std::int64_t resize = 0;             // extent of the shorter side, torchvision.transforms.Resize(n); 0: not resized
  std::int64_t height = 0, width = 0;  // then torchvision.transforms.CenterCrop; 0: all must have one size
  // Makes each sample, u8 [3, height, width] as well, in place of the two above.
  std::function<Array(const Array& picture)> prepare = {};
  bool skip_unreadable = false;  // leaves unreadable pictures out (ImageFolder::skipped) instead of an Error
};

// Resizes and crops a picture u8 [3, height, width] of read_image() according to the options, as read_image_folder()
// does for each sample. Throws Error for another array, for invalid sizes, and if that takes more than
// ReadOptions::memory (default here: 32 MB plus 16 bytes per byte of the picture).
Array fitted_image(const Array& picture, const ImageFolderOptions& options, const ReadOptions& o = {});

// A file that is not a sample, and the reason.
struct SkippedFile {
  std::string path, why;
};
// The files of find_images().
struct FoundImages {
  std::vector<std::string> files;    // .jpg, .jpeg and .png, sorted
  std::vector<SkippedFile> skipped;  // all other files, sorted
};
// Finds the pictures in a folder and its subfolders by their names only. Links to folders are not followed. Throws
// Error if a folder cannot be read.
FoundImages find_images(const std::string& folder, const ReadOptions& o = {});

// A data set of read_image_folder().
struct ImageFolder {
  Dataset data;                      // "image" u8 [n, 3, height, width], "label" i64 [n]
  std::vector<std::string> classes;  // indexed by label
  std::vector<std::string> files;    // paths of the samples
  // Entries that are not samples: files of other kinds or outside the folders of the classes, links to folders, and
  // with ImageFolderOptions::skip_unreadable the pictures that cannot be read.
  std::vector<SkippedFile> skipped = {};
};
// torchvision.datasets.ImageFolder: reads folder/CLASS/.../NAME.jpg, .jpeg or .png. Classes are the sorted names of the
// folders; samples are sorted by name within a class. Links to folders are not followed. Throws Error, naming the file,
// if a picture cannot be read (unless the options skip it) or has another size than the first; and Error if there are
// no folders, or if a class has no pictures. All pictures are held in memory, which counts against ReadOptions::memory
// (default: 32 MB plus 16 bytes per byte of the files).
ImageFolder read_image_folder(const std::string& folder, const ImageFolderOptions& options = {},
                              const ReadOptions& o = {});

}  // namespace lc
