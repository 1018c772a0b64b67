#include "lightcone/io/images/images.h"

#include <algorithm>
#include <filesystem>

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

// The picture as large as the options want it.
Array fitted(Array a, const ImageFolderOptions& options, Budget& budget) {
  if (options.resize > 0) {
    const std::int64_t height = a.shape[1], width = a.shape[2], shorter = std::min(height, width);
    if (shorter == 0) throw Error("Resize", "a picture without pixels");
    const Resize to{options.resize * height / shorter, options.resize * width / shorter};
    budget.take(static_cast<std::size_t>(std::max(to.height, height)) * 3,
                static_cast<std::size_t>(to.width));  // its rows
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

struct Found {
  std::vector<std::string> classes, files;
  std::vector<std::int64_t> labels;
};

// What a folder holds, in order; a folder that cannot be read is an Error.
template <class Iterator, class F>
void each_entry(const fs::path& folder, const F& f) {
  std::error_code ec;
  Iterator it(folder, ec);
  for (; !ec && it != Iterator(); it.increment(ec)) f(*it);
  if (ec) throw file_error("load", folder.string(), "cannot read the folder: ", ec.message());
}

Found find_pictures(const fs::path& folder, Budget& budget) {
  Found found;
  std::error_code ec;
  each_entry<fs::directory_iterator>(folder, [&](const fs::directory_entry& e) {
    if (e.is_directory(ec)) found.classes.push_back(e.path().filename().string());
  });
  if (found.classes.empty())
    throw file_error("load", folder.string(),
                     "there is no folder in it; each class is one, and its pictures lie there");
  std::sort(found.classes.begin(), found.classes.end());
  for (std::size_t label = 0; label < found.classes.size(); ++label) {
    const auto begin = static_cast<std::ptrdiff_t>(found.files.size());
    each_entry<fs::recursive_directory_iterator>(folder / found.classes[label], [&](const fs::directory_entry& e) {
      if (!is_picture(e.path()) || !e.is_regular_file(ec)) return;
      const std::string path = e.path().string();
      budget.take(sizeof(std::string) + path.size() + sizeof(std::int64_t));
      const std::uintmax_t size = e.file_size(ec);
      if (!ec) budget.parsed(static_cast<std::size_t>(size));
      found.files.push_back(path), found.labels.push_back(static_cast<std::int64_t>(label));
    });
    std::sort(found.files.begin() + begin, found.files.end());
    if (found.files.begin() + begin == found.files.end())
      throw file_error("load", (folder / found.classes[label]).string(), "no .jpg, .jpeg or .png is in it");
  }
  return found;
}

}  // namespace

bool can_read_images() { return kDecoders; }

Array read_image(const MappedFile& file, const ReadOptions& o) {
  Budget budget = io::budget_for(file, o);
  return picture(file, budget);
}
Array read_image(const std::string& path, const ReadOptions& o) { return read_image(*io::opened(path, o), o); }

ImageFolder read_image_folder(const std::string& folder, const ImageFolderOptions& options, const ReadOptions& o) {
  if (options.resize < 0 || options.height < 0 || options.width < 0 || (options.height > 0) != (options.width > 0))
    throw Error("load", str_cat("image folder: resize ", options.resize, ", ", options.height, " x ", options.width,
                                ": these are no sizes"));
  Budget budget(o, folder);
  Found found = find_pictures(folder, budget);
  const auto n = static_cast<std::int64_t>(found.files.size());
  Array images;
  for (std::size_t k = 0; k < found.files.size(); ++k) {
    ReadOptions rest = o;  // what one picture may take on its way
    if (o.memory) rest.memory = std::max<std::size_t>(1, budget.limit() - budget.taken());
    const auto file = io::opened(found.files[k], o);
    Budget own = io::budget_for(*file, rest);
    const Array a = fitted(picture(*file, own), options, own);
    if (k == 0) {
      budget.take(static_cast<std::size_t>(n), a.bytes.size());
      images = Array::zeros(DType::U8, {n, 3, a.shape[1], a.shape[2]});
    }
    if (a.shape[1] != images.shape[2] || a.shape[2] != images.shape[3])
      throw file_error("load", found.files[k], "a picture of ", a.shape[1], " x ", a.shape[2],
                       ", and the first one has ", images.shape[2], " x ", images.shape[3],
                       ": with ImageFolderOptions they are made alike");
    if (!a.bytes.empty()) std::memcpy(images.bytes.data() + k * a.bytes.size(), a.bytes.data(), a.bytes.size());
  }
  return {Dataset(Arrays{{"image", std::move(images)}, {"label", Array::of<std::int64_t>({n}, found.labels)}}),
          std::move(found.classes), std::move(found.files)};
}

}  // namespace lc
