// JPEG and PNG files decode to Pillow's bytes (tests/goldens/pictures.txt), and folders are read as torchvision reads
// them. Damaged files give an Error.
#include "lightcone/io/images/images.h"

#include <gtest/gtest.h>
#include <algorithm>

#include "data.h"
#include "error_of.h"
#include "lightcone/io/data/loader.h"
#include "paths.h"
#include "pictures.h"
#include "zip_writer.h"

using namespace lc;

namespace {

const made::Pictures& pictures() {
  static const made::Pictures p(paths::kSource);
  return p;
}
std::shared_ptr<const MappedFile> view(const std::string& bytes) {
  return MappedFile::view("picture", std::as_bytes(std::span(bytes)));
}
// Converts to Pillow's layout, with the colours of a pixel adjacent.
std::string interleaved(const Array& a) {
  std::string s;
  const std::size_t pixels = a.bytes.size() / 3;
  for (std::size_t k = 0; k < pixels; ++k)
    for (std::size_t c = 0; c < 3; ++c) s += static_cast<char>(a.bytes[c * pixels + k]);
  return s;
}
std::vector<std::uint8_t> bytes(const std::string& s) { return {s.begin(), s.end()}; }

#define NEEDS_DECODERS() \
  if (!can_read_images()) GTEST_SKIP() << "lightcone::io was built without decoders for pictures"

// Applies one transform to one sample.
Array through(const Array& in, std::vector<Transform> list) {
  Transforms t(std::move(list), in.dtype, in.shape);
  Array out = Array::zeros(t.dtype(), t.shape());
  t.apply(in.bytes.data(), out.bytes.data(), {0, 0, 0});
  return out;
}

}  // namespace

TEST(Images, AreWhatPillowMakesOfThem) {
  NEEDS_DECODERS();
  int seen = 0;
  for (const auto& [name, p] : pictures().files) {
    if (name == "jpeg_cmyk") continue;
    const Array a = read_image(*view(p.file));
    EXPECT_EQ(a.shape, (std::vector<std::int64_t>{3, p.height, p.width})) << name;
    EXPECT_EQ(bytes(interleaved(a)), bytes(p.pixels)) << name;
    ++seen;
  }
  EXPECT_EQ(seen, 9 + 30);  // PNG has 15 kinds, each interlaced and not
}

TEST(Images, WhatCannotBeReadIsSaid) {
  const TempDir folder;
  spit(folder / "text.jpg", "this is no picture"), spit(folder / "empty.png", "");
  EXPECT_PRED2(contains, error_of([&] { read_image(folder / "text.jpg"); }), "text.jpg: neither a JPEG nor a PNG");
  EXPECT_PRED2(contains, error_of([&] { read_image(folder / "empty.png"); }), "empty.png");
  EXPECT_PRED2(contains, error_of([&] { read_image(folder / "not there.png"); }), "not there.png");
  if (!can_read_images()) {
    EXPECT_PRED2(contains, error_of([&] { read_image(*view(pictures().files.at("png_rgb").file)); }), "libpng-dev");
    return;
  }
  EXPECT_PRED2(contains, error_of([&] { read_image(*view(pictures().files.at("jpeg_cmyk").file)); }), "CMYK");
}

// A file that ends before its last pixel gives an Error, wherever it is cut.
TEST(Images, FilesThatEndEarly) {
  NEEDS_DECODERS();
  for (const auto& [name, p] : pictures().files) {
    if (name == "jpeg_cmyk") continue;
    for (std::size_t length = 0; length < p.file.size() - 20; ++length)
      ASSERT_NE(error_of([&] { read_image(*view(p.file.substr(0, length))); }), "no error") << name << " " << length;
  }
}

// Bytes between two segments are skipped, as by Pillow.
TEST(Images, BytesThatMeanNothing) {
  NEEDS_DECODERS();
  made::Picture p = pictures().files.at("jpeg_444");
  p.file.insert(p.file.find("\xFF\xC4"), "\x01\x02\x03");
  EXPECT_EQ(bytes(interleaved(read_image(*view(p.file)))), bytes(p.pixels));
}

// A small file that states large extents is refused before memory is allocated.
TEST(Images, SizesAreBelievedOnlyWithinTheBudget) {
  NEEDS_DECODERS();
  std::string jpeg = pictures().files.at("jpeg_444").file;
  const std::size_t frame = jpeg.find("\xFF\xC0");
  ASSERT_NE(frame, std::string::npos);
  for (const std::size_t k : {5, 6, 7, 8}) jpeg[frame + k] = k % 2 ? '\xFF' : '\0';  // 65280 x 65280
  EXPECT_PRED2(contains, error_of([&] { read_image(*view(jpeg)); }), "ReadOptions::memory");
  const std::string& png = pictures().files.at("png_rgb").file;
  const auto chunk = [](const std::string& content) {  // the content begins with the type's four letters
    return made::big(content.size() - 4, 4) + content + made::big(made::crc(content), 4);
  };
  const std::string empty = png.substr(0, 8) +
                            chunk("IHDR" + made::big(1000, 4) + made::big(1000, 4) + std::string("\x8\2\0\0\0", 5)) +
                            chunk("IDAT") + chunk("IEND");
  EXPECT_PRED2(contains, error_of([&] { read_image(*view(empty)); }),
               "1000 x 1000 pixels, which its 57 bytes cannot hold");
  EXPECT_PRED2(contains, error_of([&] { read_image(*view(png), {.memory = 1000}); }), "more than 1000 bytes");
  EXPECT_EQ(read_image(*view(png), {.memory = 4000}).shape[2], 19);
}

TEST(Transforms, ResizeIsPillows) {
  for (const made::Resized& r : pictures().resized) {
    const std::vector<std::uint8_t> before = bytes(r.before);
    const Array in = Array::of<std::uint8_t>({r.height, r.width}, before);
    const Array out = through(in, {Resize{r.to_height, r.to_width}});
    const auto got = out.values<std::uint8_t>();
    EXPECT_EQ(std::vector(got.begin(), got.end()), bytes(r.behind)) << r.width << " x " << r.height;
    // f32 gives the same except for the second rounding
    const std::vector<float> numbers(before.begin(), before.end());
    const Array real = through(Array::of<float>({r.height, r.width}, numbers), {Resize{r.to_height, r.to_width}});
    for (std::size_t k = 0; k < got.size(); ++k) ASSERT_NEAR(real.values<float>()[k], got[k], 1.01);
  }
}

TEST(Transforms, CenterCropIsTorchvisions) {
  std::vector<std::int32_t> v(5 * 8);
  for (std::size_t k = 0; k < v.size(); ++k) v[k] = static_cast<std::int32_t>(k);
  const Array in = Array::of<std::int32_t>({5, 8}, v);
  const auto corner = [&](std::int64_t h, std::int64_t w) {
    return through(in, {CenterCrop{h, w}}).values<std::int32_t>()[0];
  };
  EXPECT_EQ(corner(5, 8), 0);
  EXPECT_EQ(corner(3, 4), 8 + 2);
  EXPECT_EQ(corner(4, 5), 0 + 2);                       // round(0.5) is 0, round(1.5) is 2
  EXPECT_EQ(corner(2, 7), 2 * 8 + 0);                   // round(1.5) is 2, round(0.5) is 0
  EXPECT_EQ(corner(1, 1), 2 * 8 + 4);                   // round(3.5) is 4
  const Array wide = through(in, {CenterCrop{7, 11}});  // one row of zeros above, one column to the left: 3 // 2
  EXPECT_EQ(wide.values<std::int32_t>()[11 + 1 + 1], 1);
  EXPECT_EQ(wide.values<std::int32_t>()[11 + 9], 0);
  EXPECT_EQ(wide.values<std::int32_t>()[11 * 5 + 8], 39);
  EXPECT_PRED2(contains, error_of([&] { through(in, {Resize{2, 2}}); }), "Resize: samples of i32");
  EXPECT_PRED2(contains, error_of([&] { through(in, {CenterCrop{0, 2}}); }), "CenterCrop: 0 x 2");
}

namespace {
// Two classes with two images and one, of two sizes, and other files.
struct Folder : TempDir {
  Folder() {
    for (const char* sub : {"zebra", "cat", "cat/more"}) std::filesystem::create_directory(path / sub);
    spit(*this / "zebra/1.PNG", pictures().files.at("png_rgb").file);
    spit(*this / "cat/b.jpeg", pictures().files.at("jpeg_grey").file);
    spit(*this / "cat/more/a.jpg", pictures().files.at("jpeg_444").file);
    spit(*this / "cat/notes.txt", "no picture"), spit(*this / "readme", "neither");
  }
};
}  // namespace

TEST(ImageFolder, IsReadAsTorchvisionReadsIt) {
  NEEDS_DECODERS();
  const Folder folder;
  const ImageFolder all = read_image_folder(folder.path, {.resize = 9, .height = 8, .width = 6});
  EXPECT_EQ(all.classes, (std::vector<std::string>{"cat", "zebra"}));
  EXPECT_EQ(all.files,
            (std::vector<std::string>{folder / "cat/b.jpeg", folder / "cat/more/a.jpg", folder / "zebra/1.PNG"}));
  EXPECT_EQ(all.data.at("image").shape, (std::vector<std::int64_t>{3, 3, 8, 6}));
  const auto labels = all.data.at("label").values<std::int64_t>();
  EXPECT_EQ(std::vector(labels.begin(), labels.end()), (std::vector<std::int64_t>{0, 0, 1}));
  // 19 x 13 is resized to 13 x 9 and cropped; 7 x 9 is resized to 9 x 11
  const Array last = through(read_image(folder / "zebra/1.PNG"), {Resize{9, 13}, CenterCrop{8, 6}});
  const auto& images = all.data.at("image");
  EXPECT_TRUE(std::equal(last.bytes.begin(), last.bytes.end(), images.bytes.begin() + 2 * 3 * 8 * 6));
  DataLoader batches(std::make_shared<const Dataset>(all.data),
                     {.batch_size = 3, .transforms = {{"image", {ToFloat{}}}}});
  EXPECT_EQ(batches.next().at("image").dtype, DType::F32);
}

TEST(ImageFolder, WhatDoesNotFitIsSaid) {
  const TempDir empty;
  EXPECT_PRED2(contains, error_of([&] { read_image_folder(empty.path); }), "there is no folder in it");
  EXPECT_PRED2(contains, error_of([&] { read_image_folder(empty / "nowhere"); }), "cannot read the folder");
  std::filesystem::create_directory(empty.path / "class");
  EXPECT_PRED2(contains, error_of([&] { read_image_folder(empty.path); }), "no .jpg, .jpeg or .png is in it");
  EXPECT_PRED2(contains, error_of([&] { read_image_folder(empty.path, {.height = 3}); }), "these are no sizes");
  NEEDS_DECODERS();
  const Folder folder;
  EXPECT_PRED2(contains, error_of([&] { read_image_folder(folder.path); }),
               "a.jpg: a picture of 13 x 19, and the first one has 9 x 7");
  EXPECT_PRED2(contains, error_of([&] {
                 read_image_folder(folder.path, {.resize = 9, .height = 8, .width = 6}, {.memory = 2000});
               }),
               "as many as ReadOptions::memory allows");
  EXPECT_PRED2(contains, error_of([&] { read_image_folder(folder.path, {.resize = 1 << 30}); }), "ReadOptions::memory");
  spit(folder / "zebra/0.png", "torn");
  EXPECT_PRED2(contains, error_of([&] { read_image_folder(folder.path, {.height = 8, .width = 6}); }),
               "0.png: neither a JPEG nor a PNG");
}

TEST(ImageFolder, WhatIsNoSampleIsSkippedAndNamed) {
  NEEDS_DECODERS();
  const Folder folder;
  std::filesystem::create_directory_symlink(folder.path / "cat/more", folder.path / "zebra/link");
  std::filesystem::create_symlink("nowhere", folder.path / "zebra/gone.png");
  const auto names = [&](const std::vector<SkippedFile>& skipped) {
    std::vector<std::string> all;
    for (const SkippedFile& f : skipped) all.push_back(f.path.substr(folder.path.string().size() + 1) + ": " + f.why);
    return all;
  };
  const std::vector<std::string> others{"readme: beside the folders of the classes",
                                        "cat/notes.txt: not .jpg, .jpeg or .png", "zebra/gone.png: not a regular file",
                                        "zebra/link: a link to a folder"};
  ImageFolderOptions options{.resize = 9, .height = 8, .width = 6};
  EXPECT_EQ(names(read_image_folder(folder.path, options).skipped), others);
  // unreadable images give an Error, unless they are skipped
  spit(folder / "cat/0.png", "torn"), spit(folder / "zebra/2.png", "torn");
  EXPECT_PRED2(contains, error_of([&] { read_image_folder(folder.path, options); }), "0.png: neither a JPEG nor a PNG");
  options.skip_unreadable = true;
  const ImageFolder all = read_image_folder(folder.path, options);
  EXPECT_EQ(all.files,
            (std::vector<std::string>{folder / "cat/b.jpeg", folder / "cat/more/a.jpg", folder / "zebra/1.PNG"}));
  EXPECT_EQ(all.data.at("image").shape, (std::vector<std::int64_t>{3, 3, 8, 6}));
  const auto labels = all.data.at("label").values<std::int64_t>();
  EXPECT_EQ(std::vector(labels.begin(), labels.end()), (std::vector<std::int64_t>{0, 0, 1}));
  auto with_torn = others;
  with_torn.insert(with_torn.end(), {"cat/0.png: neither a JPEG nor a PNG", "zebra/2.png: neither a JPEG nor a PNG"});
  EXPECT_EQ(names(all.skipped), with_torn);
  std::filesystem::remove(folder.path / "cat/0.png");
  const ImageFolder same = read_image_folder(folder.path, options);
  EXPECT_TRUE(same.data.at("image").bytes == all.data.at("image").bytes);
  // exceeding the memory limit does not count as damage
  EXPECT_PRED2(contains, error_of([&] { read_image_folder(folder.path, options, {.memory = 4000}); }),
               "as many as ReadOptions::memory allows");
  spit(folder / "zebra/1.PNG", "torn too");
  EXPECT_PRED2(contains, error_of([&] { read_image_folder(folder.path, options); }),
               "zebra: none of its pictures can be read: ");
  EXPECT_PRED2(contains, error_of([&] { read_image_folder(folder.path, options); }), "2.png: neither a JPEG");
}

TEST(ImageFolder, PicturesAreFoundAndFitted) {
  NEEDS_DECODERS();
  const Folder folder;
  const FoundImages found = find_images(folder.path);
  EXPECT_EQ(found.files,
            (std::vector<std::string>{folder / "cat/b.jpeg", folder / "cat/more/a.jpg", folder / "zebra/1.PNG"}));
  ASSERT_EQ(found.skipped.size(), 2u);
  EXPECT_EQ(found.skipped[0].path, folder / "cat/notes.txt");
  const ImageFolderOptions options{.resize = 9, .height = 8, .width = 6};
  const ImageFolder all = read_image_folder(folder.path, options);
  for (std::size_t k = 0; k < found.files.size(); ++k) {
    const Array one = fitted_image(read_image(found.files[k]), options);
    ASSERT_EQ(one.shape, (std::vector<std::int64_t>{3, 8, 6}));
    EXPECT_TRUE(std::equal(one.bytes.begin(), one.bytes.end(),
                           all.data.at("image").bytes.begin() + static_cast<std::ptrdiff_t>(k * 3 * 8 * 6)));
  }
  EXPECT_PRED2(contains, error_of([&] { find_images(folder / "nowhere"); }), "cannot read the folder");
  const Array grey = Array::zeros(DType::U8, {8, 6});
  EXPECT_PRED2(contains, error_of([&] { fitted_image(grey, options); }), "needs a picture u8 [3, height, width]");
  const Array large = Array::zeros(DType::U8, {3, 1, 100});
  EXPECT_PRED2(contains, error_of([&] { fitted_image(large, {.resize = 1 << 20}); }), "ReadOptions::memory");
}
