#include "lightcone/io/images/images.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>

#include "lightcone/io/data/opened.h"
#include "lightcone/io/data/transforms.h"
#include "lightcone/io/images/decoders.h"
#include "lightcone/io/printable.h"

namespace lc {
namespace {

namespace fs = std::filesystem;

#ifdef LIGHTCONE_IMAGES
constexpr bool kDecoders = true;
#else
constexpr bool kDecoders = false;
#endif

io::Pixels decode(const MappedFile& file, Budget& budget) {
  const auto bytes = file.bytes();
  const auto begins = [&](std::string_view magic) {
    return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
  };
  const bool jpeg = begins("\xFF\xD8\xFF");
  if (!jpeg && !begins("\x89PNG\r\n\x1A\n")) throw file_error("load", file.path(), "neither a JPEG nor a PNG");
#ifdef LIGHTCONE_IMAGES
  return jpeg ? io::decode_jpeg(file, budget) : io::decode_png(file, budget);
#else
  static_cast<void>(budget);
  throw file_error("load", file.path(), "this build of lightcone::io has no decoders for pictures: with the packages ",
                   "libturbojpeg0-dev and libpng-dev it finds them when it is configured");
#endif
}

Array picture(const MappedFile& file, Budget& budget) {
  const io::Pixels p = decode(file, budget);
  const std::size_t pixels = p.height * p.width;
  budget.take(pixels, 3);
  Array a = Array::zeros(DType::U8, {3, static_cast<std::int64_t>(p.height), static_cast<std::int64_t>(p.width)});
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t k = 0; k < pixels; ++k) a.bytes[c * pixels + k] = std::byte{p.bytes[k * 3 + c]};
  return a;
}

Array transformed(const Array& picture, std::vector<Transform> list, Budget& budget) {
  Transforms t(std::move(list), picture.dtype, picture.shape);
  budget.take(t.bytes());
  std::vector<std::int64_t> shape = t.shape();
  Array out = Array::zeros(DType::U8, std::move(shape));
  t.apply(picture.bytes.data(), out.bytes.data(), {0, 0, 0});
  return out;
}

// Resizes and crops the picture according to the options.
Array fitted(Array a, const ImageFolderOptions& options, Budget& budget) {
  if (options.resize > 0) {
    const std::int64_t height = a.shape[1], width = a.shape[2], shorter = std::min(height, width);
    if (shorter == 0) throw Error("Resize", "a picture without pixels");
    const Resize to{options.resize * height / shorter, options.resize * width / shorter};
    budget.take(static_cast<std::size_t>(std::max(to.height, height)) * 3,
                static_cast<std::size_t>(to.width));  // intermediate rows
    if (shorter != options.resize) a = transformed(a, {to}, budget);
  }
  if (options.height > 0) a = transformed(a, {CenterCrop{options.height, options.width}}, budget);
  return a;
}

bool is_picture(const fs::path& file) {
  std::string end = file.extension().string();
  for (char& c : end) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return end == ".jpg" || end == ".jpeg" || end == ".png";
}

// Calls f for the entries of a folder, in any order. Throws Error if it cannot be read.
template <class Iterator, class F>
void each_entry(const fs::path& folder, const F& f) {
  std::error_code ec;
  Iterator it(folder, ec);
  for (; !ec && it != Iterator(); it.increment(ec)) f(*it);
  if (ec) throw file_error("load", folder.string(), "cannot read the folder: ", ec.message());
}

FoundImages pictures_in(const fs::path& folder, Budget& budget) {
  FoundImages found;
  each_entry<fs::recursive_directory_iterator>(folder, [&](const fs::directory_entry& e) {
    std::error_code ec;
    const bool link = e.is_symlink(ec), is_folder = e.is_directory(ec);
    if (is_folder && !link) return;
    const std::string path = e.path().string();
    budget.take(2 * sizeof(SkippedFile) + path.size() + sizeof(std::int64_t));
    if (is_folder) return found.skipped.push_back({path, "a link to a folder"});
    if (!is_picture(e.path())) return found.skipped.push_back({path, "not .jpg, .jpeg or .png"});
    if (!e.is_regular_file(ec)) return found.skipped.push_back({path, "not a regular file"});
    const std::uintmax_t size = e.file_size(ec);
    if (!ec) budget.parsed(static_cast<std::size_t>(size));
    found.files.push_back(path);
  });
  std::ranges::sort(found.files), std::ranges::sort(found.skipped, {}, &SkippedFile::path);
  return found;
}

struct Found {
  std::vector<std::string> classes, files;
  std::vector<std::int64_t> labels;
  std::vector<SkippedFile> skipped;
};

Found find_pictures(const fs::path& folder, Budget& budget) {
  Found found;
  each_entry<fs::directory_iterator>(folder, [&](const fs::directory_entry& e) {
    std::error_code ec;
    if (e.is_directory(ec)) return found.classes.push_back(e.path().filename().string());
    budget.take(2 * sizeof(SkippedFile) + e.path().native().size());
    found.skipped.push_back({e.path().string(), "beside the folders of the classes"});
  });
  if (found.classes.empty())
    throw file_error("load", folder.string(),
                     "there is no folder in it; each class is one, and its pictures lie there");
  std::ranges::sort(found.classes), std::ranges::sort(found.skipped, {}, &SkippedFile::path);
  for (std::size_t label = 0; label < found.classes.size(); ++label) {
    FoundImages in = pictures_in(folder / found.classes[label], budget);
    if (in.files.empty())
      throw file_error("load", (folder / found.classes[label]).string(), "no .jpg, .jpeg or .png is in it");
    found.labels.insert(found.labels.end(), in.files.size(), static_cast<std::int64_t>(label));
    std::ranges::move(in.files, std::back_inserter(found.files));
    std::ranges::move(in.skipped, std::back_inserter(found.skipped));
  }
  return found;
}

void check_sizes(const ImageFolderOptions& o) {
  if (o.resize < 0 || o.height < 0 || o.width < 0 || (o.height > 0) != (o.width > 0))
    throw Error("load",
                str_cat("image folder: resize ", o.resize, ", ", o.height, " x ", o.width, ": these are no sizes"));
}

// Reads a sample within the remaining budget. Returns nullopt if it cannot be read and the options skip such pictures;
// it is then added to `skipped`.
std::optional<Array> sample(const std::string& path, const ImageFolderOptions& options, const ReadOptions& o,
                            const Budget& budget, std::vector<SkippedFile>& skipped) {
  ReadOptions rest = o;
  if (o.memory) rest.memory = std::max<std::size_t>(1, budget.limit() - budget.taken());
  std::optional<Budget> own;
  try {
    const auto file = io::opened(path, o);
    own.emplace(io::budget_for(*file, rest));
    Array read = picture(*file, *own);
    return options.prepare ? options.prepare(read) : fitted(read, options, *own);
  } catch (const Error& e) {
    if (!options.skip_unreadable || !kDecoders || (own && own->refused())) throw;
    const std::string what = e.problem(), begin = printable(path, 500) + ": ";
    skipped.push_back({path, what.starts_with(begin) ? what.substr(begin.size()) : what});
    return std::nullopt;
  }
}

}  // namespace

bool can_read_images() { return kDecoders; }

Array read_image(const MappedFile& file, const ReadOptions& o) {
  Budget budget = io::budget_for(file, o);
  return picture(file, budget);
}
Array read_image(const std::string& path, const ReadOptions& o) { return read_image(*io::opened(path, o), o); }

Array fitted_image(const Array& picture, const ImageFolderOptions& options, const ReadOptions& o) {
  check_sizes(options);
  if (picture.dtype != DType::U8 || picture.shape.size() != 3 || picture.shape[0] != 3)
    throw Error("fitted_image", str_cat("needs a picture u8 [3, height, width], as read_image() gives it, not ",
                                        name(picture.dtype), " with ", picture.shape.size(), " axes"));
  Budget budget(o, "a picture");
  budget.parsed(picture.bytes.size());
  return fitted(picture, options, budget);
}

FoundImages find_images(const std::string& folder, const ReadOptions& o) {
  Budget budget(o, folder);
  return pictures_in(folder, budget);
}

ImageFolder read_image_folder(const std::string& folder, const ImageFolderOptions& options, const ReadOptions& o) {
  check_sizes(options);
  Budget budget(o, folder);
  Found found = find_pictures(folder, budget);
  const std::size_t all = found.files.size();
  std::vector<std::int64_t> kept(found.classes.size());
  Array images;
  std::size_t n = 0;  // number of samples so far: entries of skipped files are overwritten
  for (std::size_t k = 0; k < all; ++k) {
    const std::optional<Array> a = sample(found.files[k], options, o, budget, found.skipped);
    if (!a) continue;
    if (n == 0) {
      budget.take(all, a->bytes.size());
      images = Array::zeros(DType::U8, {static_cast<std::int64_t>(all), 3, a->shape[1], a->shape[2]});
    }
    if (a->shape[1] != images.shape[2] || a->shape[2] != images.shape[3])
      throw file_error("load", found.files[k], "a picture of ", a->shape[1], " x ", a->shape[2],
                       ", and the first one has ", images.shape[2], " x ", images.shape[3],
                       ": with ImageFolderOptions they are made alike");
    if (!a->bytes.empty()) std::memcpy(images.bytes.data() + n * a->bytes.size(), a->bytes.data(), a->bytes.size());
    ++kept[static_cast<std::size_t>(found.labels[k])];
    found.labels[n] = found.labels[k];
    if (n != k) found.files[n] = std::move(found.files[k]);
    ++n;
  }
  if (const auto none = std::ranges::find(kept, 0); none != kept.end()) {
    const fs::path without = fs::path(folder) / found.classes[static_cast<std::size_t>(none - kept.begin())];
    const auto why = std::ranges::find_if(found.skipped.rbegin(), found.skipped.rend(), [&](const SkippedFile& f) {
      return f.path.starts_with(without.string() + "/");
    });
    throw file_error("load", without.string(), "none of its pictures can be read: ", why->path, ": ", why->why);
  }
  images.bytes.resize(n * images.row_bytes());
  images.shape[0] = static_cast<std::int64_t>(n);
  found.labels.resize(n), found.files.resize(n);
  return {Dataset(Arrays{{"image", std::move(images)},
                         {"label", Array::of<std::int64_t>({static_cast<std::int64_t>(n)}, found.labels)}}),
          std::move(found.classes), std::move(found.files), std::move(found.skipped)};
}

}  // namespace lc
