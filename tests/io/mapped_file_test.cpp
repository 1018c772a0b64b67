// Memory of a mapped file that is released goes back to the system, and copied bytes outlive their file.
#include "lightcone/io/mapped_file.h"

#include <numeric>

#include "data.h"
#include "lightcone/base/error.h"
#include "lightcone/io/checkpoints/weights.h"

using namespace lc;

namespace {

constexpr std::size_t kBytes = 8u << 20;

std::string some_bytes() {
  std::string s(kBytes, 0);
  for (std::size_t k = 0; k < s.size(); ++k) s[k] = static_cast<char>(k * 2654435761u >> 13);
  return s;
}
bool same(std::span<const std::byte> have, const std::string& want) {
  return have.size() == want.size() && std::memcmp(have.data(), want.data(), want.size()) == 0;
}

// Returns the resident bytes of the mapping around `p`, as the system counts them for this process, or -1 if unknown.
long resident(const void* p) {
  std::ifstream smaps("/proc/self/smaps");
  const auto at = reinterpret_cast<std::uintptr_t>(p);
  bool inside = false;
  for (std::string line; std::getline(smaps, line);) {
    unsigned long begin = 0, end = 0;
    long kb = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) inside = begin <= at && at < end;
    else if (inside && std::sscanf(line.c_str(), "Rss: %ld kB", &kb) == 1) return kb * 1024;
  }
  return -1;
}

}  // namespace

TEST(MappedFile, ReleasedPartsLeaveMemoryAndComeBack) {
  const TempDir dir;
  const std::string bytes = some_bytes();
  spit(dir / "x", bytes);
  const auto file = MappedFile::open(dir / "x");
  ASSERT_TRUE(same(file->bytes(), bytes));
  const long all = resident(file->bytes().data());
  if (all < 0) GTEST_SKIP() << "this system has no /proc/self/smaps to see resident memory by";
  ASSERT_GE(all, static_cast<long>(kBytes));
  const std::size_t begin = 12345, part = 6u << 20, page = 65536;  // the largest page size
  file->release(file->bytes().subspan(begin, part));
  EXPECT_LE(resident(file->bytes().data()), all - static_cast<long>(part - 2 * page));
  EXPECT_TRUE(same(file->bytes(), bytes));
  file->release(file->bytes().subspan(100, 50));  // less than a page: nothing is released
  EXPECT_TRUE(same(file->bytes(), bytes));
}

// Tensors of every format are released, not only GGUF's, because packed weights would otherwise be in memory twice.
TEST(MappedFile, TensorsOfACheckpointAreReleased) {
  const TempDir dir;
  const std::string bytes = some_bytes();
  const TensorToSave tensors[] = {
      {"x", DType::U8, {static_cast<std::int64_t>(kBytes)}, std::as_bytes(std::span(bytes.data(), kBytes))}};
  save_safetensors(dir / "x.safetensors", tensors);
  const Weights w = Weights::open(dir / "x.safetensors");
  const auto x = w.at("x").bytes;
  w.prefetch(x), w.prefetch(x.subspan(5, 3)), w.prefetch({});
  ASSERT_TRUE(same(x, bytes));
  const long all = resident(x.data());
  if (all < 0) GTEST_SKIP() << "this system has no /proc/self/smaps to see resident memory by";
  ASSERT_GE(all, static_cast<long>(kBytes));
  w.release(x);
  EXPECT_LE(resident(x.data()), 2 * 65536);
  w.release(std::as_bytes(std::span(bytes)));  // not part of the file
  EXPECT_TRUE(same(x, bytes));
}

TEST(MappedFile, ACopyOutlivesItsFile) {
  const TempDir dir;
  const std::string bytes = some_bytes();
  spit(dir / "x", bytes);
  const auto file = MappedFile::read(dir / "x");
  std::filesystem::resize_file(dir / "x", 0);
  EXPECT_TRUE(same(file->bytes(), bytes));
  file->release(file->bytes());
  EXPECT_TRUE(same(file->bytes(), bytes));
  EXPECT_THROW(MappedFile::read(dir / "x"), Error);  // the file is empty now
  EXPECT_THROW(MappedFile::read(dir / "y"), Error);
  EXPECT_THROW(MappedFile::read(dir.path.string()), Error);
  spit(dir / "x", bytes);
  EXPECT_THROW(MappedFile::read(dir / "x", kBytes - 1), Error);
  EXPECT_TRUE(same(MappedFile::read(dir / "x", kBytes)->bytes(), bytes));
}

// Kernel files state the size of a page and contain a few words.
TEST(MappedFile, AFileThatEndsEarlyIsAnError) {
  const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";
  std::error_code ec;
  if (std::filesystem::file_size(path, ec) < 1024 || ec) GTEST_SKIP() << path << " is not here";
  try {
    MappedFile::read(path);
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("became shorter"), std::string::npos) << e.what();
  }
}

// Weights that lie in one file (safetensors with an index, llama2.c) are read into memory, and then the file is
// truncated.
TEST(Weights, UnmappedTheyMayBeCutShort) {
  const TempDir dir;
  std::vector<float> values(100000);
  std::iota(values.begin(), values.end(), 0.f);
  const TensorToSave tensors[] = {{"a", DType::F32, {100000}, std::as_bytes(std::span(values))}};
  save_safetensors(dir / "x.safetensors", tensors);
  spit(dir / "index.json", R"({"weight_map": {"a": "x.safetensors"}})");
  for (const char* name : {"x.safetensors", "index.json"}) {
    const Weights w = Weights::open(dir / name, {.map = false});
    std::filesystem::resize_file(dir / "x.safetensors", 10);
    EXPECT_EQ(Weights::read(w.at("a")), values);
    save_safetensors(dir / "x.safetensors", tensors);
  }
  // llama2.c: seven numbers, then one layer of width 1024
  const std::int32_t header[7] = {1024, 8, 1, 1, 1, 8, 4};
  const std::size_t floats = 8u * 1024 + 1024 + 4u * 1024 * 1024 + 1024 + 3u * 8 * 1024 + 1024 + 4u * 1024;
  std::string bin(reinterpret_cast<const char*>(header), 28);
  bin.resize(28 + floats * 4, 1);
  spit(dir / "x.bin", bin);
  const Weights w = Weights::open(dir / "x.bin", {.map = false});
  std::filesystem::resize_file(dir / "x.bin", 28);
  for (const auto& [name, t] : w.tensors())
    for (float v : Weights::read(t)) ASSERT_EQ(v, 0x1.020202p-125f) << name;
}
