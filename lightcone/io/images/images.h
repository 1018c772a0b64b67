// Pictures: JPEG and PNG files, and folders of them.
//
// Files may be hostile: a picture's size is checked against ReadOptions::memory before memory is taken for it, and a
// file that is damaged, cut short or something else is an Error. The decoders are libjpeg-turbo's and libpng's; where
// lightcone::io was built without them, these functions throw an Error that says so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lightcone/io/data/array.h"
#include "lightcone/io/data/dataset.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/read_options.h"

namespace lc {

// Was the library built with decoders?
bool can_read_images();

// One picture as u8 [3, height, width], red, green and blue, whatever the file has (PIL's
// Image.open(path).convert("RGB"), channels first): grey is repeated, transparency dropped, of 16 bits the upper 8 are
// taken. (Pillow does the latter to colours and to grey with transparency; of plain grey of 16 bits it makes 255 of
// all that is above, which leaves white pictures.) Samples are not changed for a gamma or a colour profile that a file
// names, as they are not in Pillow and torchvision. Error for a JPEG in CMYK, and for one of more than 500 scans, which
// keep a decoder busy. Besides the picture's own bytes, decoding takes up to three times as many from
// ReadOptions::memory.
Array read_image(const std::string& path, const ReadOptions& o = {});
Array read_image(const MappedFile& file, const ReadOptions& o = {});

struct ImageFolderOptions {
  std::int64_t resize = 0;  // of the shorter side, torchvision.transforms.Resize(n); 0: pictures stay as large
  std::int64_t height = 0, width = 0;  // behind that torchvision.transforms.CenterCrop; 0: all must have one size
  bool skip_unreadable = false;        // a picture that cannot be read is left out (ImageFolder::skipped) and no Error
};

// A picture u8 [3, height, width], as read_image() gives it, as large as the options want it: what read_image_folder()
// makes a sample of. Error for another array, for sizes that are none, and where that takes more than
// ReadOptions::memory, whose default here is 32 MB and 16 bytes for each byte of the picture.
Array fitted_image(const Array& picture, const ImageFolderOptions& options, const ReadOptions& o = {});

// A file that is no sample, and why.
struct SkippedFile {
  std::string path, why;
};
struct FoundImages {
  std::vector<std::string> files;    // .jpg, .jpeg and .png, in order
  std::vector<SkippedFile> skipped;  // what else is there, in order
};
// The pictures in a folder and in the folders within it, told by their names alone; links to folders are not followed.
// Error for a folder that cannot be read.
FoundImages find_images(const std::string& folder, const ReadOptions& o = {});

struct ImageFolder {
  Dataset data;                      // "image" u8 [n, 3, height, width], "label" i64 [n]
  std::vector<std::string> classes;  // by label
  std::vector<std::string> files;    // of the samples
  // What lies there and is no sample: files of other kinds or beside the folders of the classes, links to folders, and
  // with ImageFolderOptions::skip_unreadable the pictures that cannot be read.
  std::vector<SkippedFile> skipped = {};
};
// torchvision.datasets.ImageFolder: folder/CLASS/.../NAME.jpg, .jpeg or .png. Classes are the names of the folders in
// order, samples those of the files in order within them. Links to folders are not followed. Error, which names the
// file, for a picture that cannot be read, unless the options leave it out, or has another size than the first; where
// there is no folder, or none of a class's files is a picture. All pictures are held in memory, which counts against
// ReadOptions::memory (its default: 32 MB and 16 bytes for each byte of the files).
ImageFolder read_image_folder(const std::string& folder, const ImageFolderOptions& options = {},
                              const ReadOptions& o = {});

}  // namespace lc
