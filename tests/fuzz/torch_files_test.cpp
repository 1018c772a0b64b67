// Files of torch.save() with changed bytes, instructions and numbers give tensors or an Error, within their memory
// budget and in time.
//
// LIGHTCONE_FUZZ changes each file so often (600 times without it), LIGHTCONE_FUZZ_SEED in other ways.
#include <algorithm>
#include <cstdlib>
#include <random>

#include "data.h"
#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/mapped_file.h"
#include "lightcone/io/printable.h"
#include "memory.h"
#include "processor_time.h"

using namespace lc;

namespace {

constexpr std::size_t kSmall = 64u << 10;  // memory budget of every second file

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* s = std::getenv(name);
  return s && *s ? std::strtoull(s, nullptr, 10) : otherwise;
}

std::vector<std::string> files() {
  std::vector<std::string> all;
  for (const auto& e : std::filesystem::directory_iterator(std::string(paths::kSource) + "/tests/goldens/torch"))
    if (e.path().extension() == ".pt") all.push_back(e.path().string());
  for (const char* name :
       {"models/tiny/evil_torch.bin", "models/tiny/tiny_torch_state.bin", "models/tiny/tiny_gpt2.bin",
        "models/tiny/tiny_rrdbnet.pth", "models/tiny/pico_resnet18.pth", "models/taef2/taef2_decoder.pth",
        "models/yolov9t/yolov9t.pt", "vision/cifar_resnet20/upstream_resnet20-12fca82f.th"})
    if (std::filesystem::exists(data(name))) all.push_back(data(name));
  std::ranges::sort(all);
  return all;
}

// Where the pickles of a file lie. Everything else is bytes of tensors, or headers of an archive.
std::pair<std::size_t, std::size_t> pickle_of(const std::string& file) {
  const auto u16 = [&](std::size_t at) {
    return static_cast<std::size_t>(static_cast<unsigned char>(file[at])) |
           static_cast<std::size_t>(static_cast<unsigned char>(file[at + 1])) << 8;
  };
  const std::size_t name = file.find("data.pkl");
  if (!file.starts_with("PK") || name == file.npos) return {0, std::min<std::size_t>(file.size(), 20000)};
  const std::size_t begin = name + 8 + u16(28);
  const std::size_t end = file.find("PK", begin);
  return {begin, std::min(end, file.size())};
}

// Changes a file in place: a byte, an instruction, a number of four bytes, or a part that is copied over another one.
void change(std::string& file, std::pair<std::size_t, std::size_t> pickle, std::mt19937_64& random) {
  static constexpr char kOps[] =
      "(.012FGIJKLMNPQRSTUVXabcdeghijlopqrstu}])\x80\x81\x82\x85\x86\x87\x88\x89\x8a\x8b\x8c\x8d"
      "\x8e\x8f\x90\x91\x92\x93\x94\x95\x96\x97\x98";
  static constexpr std::uint32_t kNumbers[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0xff, 0x10000};
  const auto draw = [&](std::size_t below) {
    return static_cast<std::size_t>(random() % std::max<std::size_t>(below, 1));
  };
  const bool inside = draw(8) != 0;
  const std::size_t begin = inside ? pickle.first : 0, size = (inside ? pickle.second : file.size()) - begin,
                    at = begin + draw(size);
  switch (draw(5)) {
    case 0: file[at] = static_cast<char>(random()); break;
    case 1: file[at] = kOps[draw(sizeof kOps - 1)]; break;
    case 2: {
      const std::uint32_t n = kNumbers[draw(std::size(kNumbers))];
      for (std::size_t i = 0; i < 4 && at + i < file.size(); ++i) file[at + i] = static_cast<char>(n >> 8 * i);
      break;
    }
    case 3: {
      const std::size_t from = begin + draw(size), length = draw(40);
      for (std::size_t i = 0; i < length && std::max(at, from) + i < file.size(); ++i) file[at + i] = file[from + i];
      break;
    }
    default: file[at] = static_cast<char>(file[at] + (draw(2) ? 1 : -1));
  }
}

// Opens the bytes and looks at every tensor; returns the Error, or "".
std::string read(const std::string& bytes, const ReadOptions& o) {
  const auto file = MappedFile::view("x.pt", std::as_bytes(std::span(bytes)));
  std::string error;
  counted::reset_most();
  const std::size_t before = counted::live();
  const double seconds = test::least_seconds(2 * test::kSanitizersTake, [&] {
    error.clear();
    try {
      const Weights w = Weights::open(file, o);
      unsigned sum = 0;
      for (const auto& [name, t] : w.tensors())
        if (!t.bytes.empty()) sum += static_cast<unsigned>(t.bytes.front()) + static_cast<unsigned>(t.bytes.back());
      for (const auto& [path, text] : w.metadata()) sum += static_cast<unsigned>(text.size());
      EXPECT_NE(sum, ~0u);
    } catch (const Error& e) {
      error = e.what();
    }
  });
  const std::size_t budget = o.memory ? o.memory : Budget::kFloor + Budget::kEachByte * bytes.size();
  // the allowance beyond the budget is for zlib's window, the result's own tables and the message of an Error
  EXPECT_LE(counted::most() - before, budget + (o.memory ? 48u << 10 : 96u << 10)) << error;
  EXPECT_LT(seconds, 2 * test::kSanitizersTake);
  EXPECT_EQ(error, printable(error, 4000));
  return error;
}

class TorchFiles : public ::testing::TestWithParam<std::string> {};

}  // namespace

TEST_P(TorchFiles, TensorsOrAnError) {
  const std::string whole = slurp(GetParam());
  const auto pickle = pickle_of(whole);
  ASSERT_LT(pickle.first, pickle.second);
  const std::uint64_t count = from_environment("LIGHTCONE_FUZZ", 600),
                      first = from_environment("LIGHTCONE_FUZZ_SEED", 1);
  std::uint64_t loaded = 0;
  std::string bytes = whole;
  for (std::uint64_t k = 0; k < count && !HasFailure(); ++k) {
    SCOPED_TRACE(str_cat(GetParam(), ", change ", k, " of LIGHTCONE_FUZZ_SEED=", first));
    std::mt19937_64 random(first * 1000003 + k);
    bytes = whole;
    for (std::size_t n = 1 + random() % 3; n > 0; --n) change(bytes, pickle, random);
    if (random() % 50 == 0) bytes.resize(random() % bytes.size());
    loaded += read(bytes, {.memory = k % 2 ? kSmall : 0}).empty();
  }
  RecordProperty("loaded", std::to_string(loaded));
  std::printf("%s: %llu of %llu loaded\n", GetParam().substr(GetParam().rfind('/') + 1).c_str(),
              static_cast<unsigned long long>(loaded), static_cast<unsigned long long>(count));
}

INSTANTIATE_TEST_SUITE_P(Every, TorchFiles, ::testing::ValuesIn(files()), [](const auto& info) {
  std::string name = std::filesystem::path(info.param).stem().string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});
