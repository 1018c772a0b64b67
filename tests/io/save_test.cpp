// Checkpoints are written whole or not at all: after a full disk, a failed call, a signal or a kill the old file is
// intact.
//
// Saved files are read back. If python3 has safetensors and numpy, they are byte for byte what safetensors writes, and
// numpy reads them.
#include "lightcone/io/checkpoints/save.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "data.h"
#include "lightcone/base/error.h"
#include "lightcone/io/atomic_file.h"
#include "lightcone/io/checkpoints/weights.h"
#include "lightcone/io/data/readers.h"

using namespace lc;

// The system calls of writing are redirected here (--wrap, tests/CMakeLists.txt), and fail where a test requests it.
namespace {

enum class Call { None, Open, Write, Chmod, Sync, Link, Rename };
struct Fault {
  Call call = Call::None;
  int nth = 0, error = 0;  // the number of the failing call, from 1; its errno
  bool and_later = false;  // all later calls fail, too
  int seen = 0;
} fault;
bool short_writes = false;

bool fails(Call call) {
  if (call != fault.call || fault.nth == 0) return false;
  ++fault.seen;
  if (fault.seen != fault.nth && !(fault.and_later && fault.seen > fault.nth)) return false;
  errno = fault.error;
  return true;
}

}  // namespace

extern "C" {
int __real_openat(int folder, const char* path, int flags, ...);
int __wrap_openat(int folder, const char* path, int flags, unsigned mode) {
  return fails(Call::Open) ? -1 : __real_openat(folder, path, flags, mode);
}
ssize_t __real_write(int fd, const void* data, size_t n);
ssize_t __wrap_write(int fd, const void* data, size_t n) {
  if (fails(Call::Write)) return -1;
  return __real_write(fd, data, short_writes && n > 7 ? 7 + n / 3 : n);
}
int __real_fchmod(int fd, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode) { return fails(Call::Chmod) ? -1 : __real_fchmod(fd, mode); }
int __real_fsync(int fd);
int __wrap_fsync(int fd) { return fails(Call::Sync) ? -1 : __real_fsync(fd); }
int __real_linkat(int a, const char* from, int b, const char* to, int flags);
int __wrap_linkat(int a, const char* from, int b, const char* to, int flags) {
  return fails(Call::Link) ? -1 : __real_linkat(a, from, b, to, flags);
}
int __real_renameat(int a, const char* from, int b, const char* to);
int __wrap_renameat(int a, const char* from, int b, const char* to) {
  return fails(Call::Rename) ? -1 : __real_renameat(a, from, b, to);
}
}

namespace {

// Tensors of every dtype, an empty one and a scalar, with edge cases and names that need escapes.
struct Example {
  std::vector<float> f{1, -2, 3.5f, NAN, INFINITY, -0.0f};
  std::vector<double> d{1e300, -0.0, 5e-324};
  std::vector<std::uint16_t> h{0x3c00, 0x8000, 0x7e00};
  std::vector<std::int64_t> l{INT64_MIN, INT64_MAX};
  std::vector<std::int32_t> i{INT32_MIN, 0, 7, -1};
  std::vector<std::int8_t> b{-128, 127, 0};
  std::vector<std::uint8_t> u{0, 255, 1, 0, 1};
  std::vector<std::int16_t> i16{INT16_MIN, -1};
  std::vector<std::uint16_t> u16{UINT16_MAX, 1};
  std::vector<std::uint32_t> u32{UINT32_MAX, 2};
  std::vector<std::uint64_t> u64{UINT64_MAX, 3};
  std::vector<TensorToSave> tensors(bool bf16) const {
    const auto bytes = [](const auto& v) { return std::as_bytes(std::span(v)); };
    std::vector<TensorToSave> t = {
        {"z", DType::U8, {5}, bytes(u)},       {"layers.0.weight", DType::F32, {2, 3}, bytes(f)},
        {"b", DType::I8, {3, 1}, bytes(b)},    {"a/\"quoted\"\t\\ \xC3\xA9", DType::F64, {3}, bytes(d)},
        {"half", DType::F16, {3}, bytes(h)},   {"long", DType::I64, {2}, bytes(l)},
        {"", DType::I32, {2, 1, 2}, bytes(i)}, {"flags", DType::Bool, {2}, bytes(u).subspan(2, 2)},
        {"i16", DType::I16, {2}, bytes(i16)},  {"u16", DType::U16, {2}, bytes(u16)},
        {"u32", DType::U32, {2}, bytes(u32)},  {"u64", DType::U64, {1, 2}, bytes(u64)},
        {"empty", DType::I64, {0, 4}, {}},     {"scalar", DType::F32, {}, bytes(f).first(4)}};
    if (bf16) {  // numpy lacks it
      t.push_back({"brain", DType::BF16, {3}, bytes(h)});
      t.push_back({"f8", DType::F8E4M3FN, {5}, bytes(u)});
      t.push_back({"f8 e5m2", DType::F8E5M2, {3, 1}, bytes(b)});
    }
    return t;
  }
};

using Save = void (*)(const std::string& path, std::span<const TensorToSave> tensors);
constexpr Save kSafetensors = [](const std::string& path, std::span<const TensorToSave> t) {
  save_safetensors(path, t);
};
constexpr Save kBoth[] = {kSafetensors, save_npz};

std::size_t files_in(const TempDir& dir) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(dir.path), {}));
}

// Saving over an old file fails with an Error that contains these words. The old file is unchanged, and no other file
// is left.
void expect_failure(const TempDir& dir, Save save, const std::string& words) {
  static const std::vector<float> values(300'000, 2);
  const std::vector<TensorToSave> large = {{"a", DType::F32, {300'000}, std::as_bytes(std::span(values))}};
  const std::string before = slurp(dir / "x");
  const std::size_t files = files_in(dir);
  try {
    save(dir / "x", large);
    ADD_FAILURE() << "it was saved: " << words;
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(words), std::string::npos) << e.what() << " does not say " << words;
  }
  fault = {};
  EXPECT_EQ(slurp(dir / "x"), before);
  EXPECT_EQ(files_in(dir), files);
}

// Returns the inode number of the file, or 0 if there is none.
ino_t file_number(const std::string& path) {
  struct stat s = {};
  return ::stat(path.c_str(), &s) == 0 ? s.st_ino : 0;
}

bool python_has(const std::string& modules) {
  return std::system(("python3 -c 'import " + modules + "' 2>/dev/null").c_str()) == 0;
}
// Runs the Python program with the folder as its argument.
int python(const TempDir& dir, const std::string& program) {
  spit(dir / "program.py", program);
  return std::system(("python3 " + (dir / "program.py") + " " + dir.path.string()).c_str());
}

}  // namespace

TEST(SaveSafetensors, IsReadBack) {
  const TempDir dir;
  const Example e;
  save_safetensors(dir / "x.safetensors", e.tensors(true), {{"epoch", "3"}, {"\xC3\xA9", "\"\n"}});
  const Weights w = Weights::open(dir / "x.safetensors");
  EXPECT_EQ(w.metadata(), (std::map<std::string, std::string>{{"epoch", "3"}, {"\xC3\xA9", "\"\n"}}));
  ASSERT_EQ(w.tensors().size(), e.tensors(true).size());
  for (const TensorToSave& t : e.tensors(true)) {
    const StoredTensor& have = w.at(t.name);
    EXPECT_EQ(have.dtype, t.dtype) << t.name;
    EXPECT_EQ(have.shape, t.shape) << t.name;
    ASSERT_EQ(have.bytes.size(), t.bytes.size()) << t.name;
    EXPECT_TRUE(std::equal(t.bytes.begin(), t.bytes.end(), have.bytes.begin())) << t.name;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(have.bytes.data()) % size_of(t.dtype), 0u)
        << t.name << " is not aligned";
  }
  EXPECT_EQ(files_in(dir), 1u);
}

// The Python library loads the file and writes the same bytes.
TEST(SaveSafetensors, IsWhatPythonWrites) {
  if (!python_has("safetensors.numpy")) GTEST_SKIP() << "python3 has no safetensors";
  const TempDir dir;
  save_safetensors(dir / "ours", Example().tensors(false), {{"format", "np"}});
  ASSERT_EQ(python(dir, R"(
import sys
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
with safe_open(sys.argv[1] + "/ours", "np") as f:
    metadata = f.metadata()
save_file(load_file(sys.argv[1] + "/ours"), sys.argv[1] + "/theirs", metadata)
)"),
            0);
  EXPECT_EQ(slurp(dir / "ours"), slurp(dir / "theirs"));
}

TEST(SaveNpz, IsReadBack) {
  const TempDir dir;
  const Example e;
  save_npz(dir / "x.npz", e.tensors(false));
  const auto read = read_npz(dir / "x.npz");
  ASSERT_EQ(read.size(), e.tensors(false).size());
  for (const TensorToSave& t : e.tensors(false)) {
    const Array& have = read.at(t.name);
    EXPECT_EQ(have.dtype, t.dtype) << t.name;
    EXPECT_EQ(have.shape, t.shape) << t.name;
    EXPECT_TRUE(std::equal(t.bytes.begin(), t.bytes.end(), have.bytes.begin(), have.bytes.end())) << t.name;
  }
  const std::string first = slurp(dir / "x.npz");
  save_npz(dir / "x.npz", e.tensors(false));
  EXPECT_EQ(slurp(dir / "x.npz"), first);  // it contains no time stamp
  save_npz(dir / "none.npz", {});
  EXPECT_TRUE(read_npz(dir / "none.npz").empty());
  const TensorToSave bf16[] = {{"x", DType::BF16, {0}, {}}}, nul[] = {{std::string("a\0b", 3), DType::F32, {0}, {}}},
                     latin[] = {{"\xE9", DType::F32, {0}, {}}};
  EXPECT_THROW(save_npz(dir / "y", bf16), Error);
  EXPECT_THROW(save_npz(dir / "y", nul), Error);
  EXPECT_THROW(save_npz(dir / "y", latin), Error);
  EXPECT_EQ(files_in(dir), 2u);
}

// The count exceeds 16 bits (ZIP64).
TEST(SaveNpz, ManyMembers) {
  const TempDir dir;
  std::vector<TensorToSave> many;
  for (int i = 0; i < 70'000; ++i) many.push_back({std::to_string(i), DType::U8, {0}, {}});
  save_npz(dir / "x.npz", many);
  EXPECT_EQ(read_npz(dir / "x.npz").size(), many.size());
  if (!python_has("numpy")) return;
  EXPECT_EQ(python(dir, "import sys, numpy\nsys.exit(len(numpy.load(sys.argv[1] + '/x.npz').files) != 70000)"), 0);
}

// numpy loads our files, and we read numpy's, with and without compression.
TEST(SaveNpz, NumpyAgrees) {
  if (!python_has("numpy")) GTEST_SKIP() << "python3 has no numpy";
  const TempDir dir;
  const Example e;
  save_npz(dir / "ours.npz", e.tensors(false));
  ASSERT_EQ(python(dir, R"(
import sys, numpy
ours = numpy.load(sys.argv[1] + "/ours.npz")
arrays = {name: ours[name] for name in ours.files}
numpy.savez(sys.argv[1] + "/stored.npz", **arrays)
numpy.savez_compressed(sys.argv[1] + "/deflated.npz", **arrays)
)"),
            0);
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const auto read = read_npz(dir / name);
    for (const TensorToSave& t : e.tensors(false)) {
      const Array& have = read.at(t.name);
      EXPECT_EQ(have.dtype, t.dtype) << t.name;
      EXPECT_EQ(have.shape, t.shape) << t.name;
      EXPECT_TRUE(std::equal(t.bytes.begin(), t.bytes.end(), have.bytes.begin(), have.bytes.end())) << t.name;
    }
  }
}

TEST(Save, WrongTensorsAreRefusedBeforeAnythingIsWritten) {
  const TempDir dir;
  const float one = 1;
  const auto bytes = std::as_bytes(std::span(&one, 1));
  const std::vector<TensorToSave> wrong[] = {
      {{"a", DType::F32, {2}, bytes}},
      {{"a", DType::F32, {-1}, {}}},
      {{"a", DType::F32, {1}, bytes}, {"a", DType::F32, {1}, bytes}},
      {{"a", DType::F32, {std::int64_t{1} << 62}, {}}},  // 2^64 bytes, which is 0 in 64 bits
      {{"a", DType::F32, {std::int64_t{1} << 40, std::int64_t{1} << 40, 0}, {}}}};
  for (const auto& t : wrong)
    for (Save save : kBoth) EXPECT_THROW(save(dir / "x", t), Error);
  const TensorToSave good[] = {{"a", DType::F32, {1}, bytes}}, reserved[] = {{"__metadata__", DType::F32, {1}, bytes}},
                     latin[] = {{"\xE9", DType::F32, {1}, bytes}};
  EXPECT_THROW(save_safetensors(dir / "x", reserved), Error);
  EXPECT_THROW(save_safetensors(dir / "x", latin), Error);
  EXPECT_THROW(save_safetensors(dir / "x", good, {{"k", "\xE9"}}), Error);
  // exceeds the limit of readers
  EXPECT_THROW(save_safetensors(dir / "x", good, {{"k", std::string(100'000'000, 'x')}}), Error);
  EXPECT_EQ(files_in(dir), 0u);
}

TEST(Save, PlacesThatCannotBeWritten) {
  const TempDir dir;
  const std::vector<TensorToSave> none = {{"a", DType::F32, {0}, {}}};
  std::filesystem::create_directory(dir / "folder");
  spit(dir / "file", "x");
  std::filesystem::create_symlink("nowhere", dir / "dangling");
  const std::string places[] = {dir / "no/such/folder/x",
                                dir / "folder",
                                dir / "folder/",
                                dir / "file/x",
                                dir / "dangling",
                                "/dev/full",
                                "",
                                "/proc/x",
                                std::string("a\0b", 3),
                                dir / std::string(300, 'n')};
  for (const std::string& path : places)
    for (Save save : kBoth) EXPECT_THROW(save(path, none), Error) << path;
  EXPECT_EQ(files_in(dir), 3u);
  EXPECT_TRUE(std::filesystem::is_empty(dir / "folder"));
}

TEST(Save, AFolderThatMayNotBeWritten) {
  const TempDir dir;
  spit(dir / "x", "old");
  std::filesystem::permissions(dir.path, std::filesystem::perms(0555));
  const bool root = ::geteuid() == 0;  // root may write everywhere
  constexpr uid_t kNobody = 65534;
  if (root && ::seteuid(kNobody) != 0) GTEST_SKIP() << "root may write everywhere, and cannot become anyone else here";
  for (Save save : kBoth) expect_failure(dir, save, "cannot create a file in the folder");
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  std::filesystem::permissions(dir.path, std::filesystem::perms(0700));
}

TEST(Save, LinksAndRights) {
  const TempDir dir;
  const std::vector<TensorToSave> none = {{"a", DType::F32, {0}, {}}};
  const auto rights = [&](const std::string& name) {
    struct stat s = {};
    ::stat((dir / name).c_str(), &s);
    return s.st_mode & 07777;
  };
  const mode_t old = ::umask(027);
  save_safetensors(dir / "new", none);
  EXPECT_EQ(rights("new"), 0640u);  // as the umask allows
  ::chmod((dir / "new").c_str(), 0604);
  save_safetensors(dir / "new", none, {{"a", "b"}});
  EXPECT_EQ(rights("new"), 0604u);
  ::umask(old);
  std::filesystem::create_directory(dir / "elsewhere");
  std::filesystem::create_symlink("../new", dir / "elsewhere/link");
  save_safetensors(dir / "elsewhere/link", none, {{"c", "d"}});
  EXPECT_TRUE(std::filesystem::is_symlink(dir / "elsewhere/link"));
  EXPECT_EQ(Weights::open(dir / "new").metadata().at("c"), "d");
}

TEST(Save, AFullDisk) {
  const TempDir dir;
  spit(dir / "x", "old");
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  for (rlim_t most : {0, 5, 100'000, 1'000'000})
    for (Save save : kBoth) {
      const rlimit tight{most, old.rlim_max};
      setrlimit(RLIMIT_FSIZE, &tight);
      expect_failure(dir, save, "cannot write it");
      setrlimit(RLIMIT_FSIZE, &old);
    }
}

// Each system call fails in several ways, with and without unnamed temporary files (O_TMPFILE).
TEST(Save, EveryCallFails) {
  const TempDir dir;
  spit(dir / "x", "old");
  struct Case {
    Fault fault;
    const char* words;
  };
  const Case cases[] = {{{Call::Open, 1, EMFILE}, "cannot open the folder"},
                        {{Call::Open, 2, ENOSPC, true}, "cannot create a file"},
                        {{Call::Write, 1, ENOSPC}, "No space left"},
                        {{Call::Write, 2, EIO}, "cannot write it"},
                        {{Call::Write, 1, EBADF}, "Bad file descriptor"},
                        {{Call::Write, 2, EDQUOT}, "cannot write it"},
                        {{Call::Chmod, 1, EPERM}, "the rights of the old one"},
                        {{Call::Sync, 1, EIO}, "cannot force it to the disk"},
                        {{Call::Sync, 1, ENOSPC}, "No space left"},
                        {{Call::Rename, 1, ENOSPC}, "cannot put the new file in its place"}};
  for (const Case& c : cases)
    for (Save save : kBoth) {
      fault = c.fault;
      expect_failure(dir, save, c.words);
    }
  fault = {Call::Link, 1, EMLINK};
  expect_failure(dir, save_npz, "cannot give the new file a name");
}

TEST(Save, AFolderThatIsNotForcedToTheDisk) {
  const TempDir dir;
  const std::vector<TensorToSave> none = {{"a", DType::F32, {0}, {}}};
  fault = {Call::Sync, 2, EINVAL};  // not all file systems can sync a folder
  save_safetensors(dir / "x", none);
  fault = {Call::Sync, 2, EIO};
  EXPECT_THROW(save_safetensors(dir / "y", none), Error);
  fault = {};
  EXPECT_EQ(Weights::open(dir / "y").tensors().size(), 1u);  // the file was replaced, as the Error states
  EXPECT_EQ(files_in(dir), 2u);
}

// The file system does not support unnamed files. There, too, a failure leaves no file.
TEST(Save, NamedTemporaries) {
  const TempDir dir;
  const Example e;
  for (int error : {EOPNOTSUPP, EISDIR, EINVAL}) {
    fault = {Call::Open, 2, error};
    save_safetensors(dir / "x", e.tensors(true));
    fault = {};
    EXPECT_EQ(Weights::open(dir / "x").tensors().size(), e.tensors(true).size());
    EXPECT_EQ(files_in(dir), 1u);
  }
  const std::string before = slurp(dir / "x");
  rlimit old;
  getrlimit(RLIMIT_FSIZE, &old);
  const rlimit tight{10, old.rlim_max};
  fault = {Call::Open, 2, EOPNOTSUPP};
  setrlimit(RLIMIT_FSIZE, &tight);
  EXPECT_THROW(save_safetensors(dir / "x", e.tensors(true)), Error);
  setrlimit(RLIMIT_FSIZE, &old);
  fault = {};
  EXPECT_EQ(slurp(dir / "x"), before);
  EXPECT_EQ(files_in(dir), 1u);
}

// The next save removes files that killed writers left. It keeps files of running writers, and files with similar
// names.
TEST(Save, WhatKilledWritersLeftIsRemoved) {
  const TempDir dir;
  const std::vector<TensorToSave> none = {{"a", DType::F32, {0}, {}}};
  int ready[2], go[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(go), 0);
  const pid_t writer = ::fork();
  if (writer == 0) {
    char c = 'r';
    int code = 1;
    try {
      fault = {Call::Open, 2, EOPNOTSUPP};  // writes to a named temporary file
      io::AtomicFile file("save", dir / "slow");
      fault = {};
      file.write("half");
      if (::write(ready[1], &c, 1) == 1 && ::read(go[0], &c, 1) == 1) file.commit(), code = 0;
    } catch (...) {
    }
    ::_exit(code);
  }
  char c = 'g';
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  EXPECT_EQ(files_in(dir), 1u);  // the file being written
  const std::string others[] = {".lightcone-x-1.tmp", ".lightcone-1-2.tmp.old", "lightcone-1-2.tmp",
                                ".lightcone-1.txt"};
  for (const std::string& name : others) spit(dir / name, "of somebody");
  std::filesystem::create_directory(dir / ".lightcone-5-5.tmp");
  spit(dir / "target", "target");
  std::filesystem::create_symlink("target", dir / ".lightcone-6-6.tmp");
  const std::size_t kept = files_in(dir) - 1;
  for (int k = 0; k < 20; ++k) spit(dir / (".lightcone-" + std::to_string(k) + "-0.tmp"), "of a killed one");
  save_safetensors(dir / "x", none);
  io::remove_abandoned(dir.path.string());
  EXPECT_EQ(files_in(dir), kept + 2);
  ASSERT_EQ(::write(go[1], &c, 1), 1);
  int status = 0;
  ::waitpid(writer, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(slurp(dir / "slow"), "half");
  EXPECT_EQ(files_in(dir), kept + 2);
  for (const std::string& name : others) EXPECT_EQ(slurp(dir / name), "of somebody");
  EXPECT_EQ(slurp(dir / "target"), "target");
  io::remove_abandoned(dir / "no such folder");
  for (const int fd : {ready[0], ready[1], go[0], go[1]}) ::close(fd);
}

TEST(FolderLock, IsOfOneProcessAndEndsWithIt) {
  const TempDir dir;
  const auto refused = [&] {
    try {
      io::FolderLock("train", dir.path.string());
      return std::string();
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  EXPECT_EQ(refused(), "");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const io::FolderLock lock("train", dir.path.string());
    if (::write(ready[1], "r", 1) == 1) ::pause();
    ::_exit(0);
  }
  char c;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  EXPECT_NE(refused().find("another process is at work in this folder"), std::string::npos) << refused();
  EXPECT_EQ(files_in(dir), 0u);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(refused(), "");
  for (const int fd : ready) ::close(fd);
}

TEST(Save, InterruptedCallsAndShortWrites) {
  const TempDir dir;
  const Example e;
  save_npz(dir / "want", e.tensors(false));
  for (Call call : {Call::Open, Call::Write, Call::Chmod, Call::Sync}) {
    spit(dir / "x", "old");
    fault = {call, 1, EINTR};
    save_npz(dir / "x", e.tensors(false));
    EXPECT_GE(fault.seen, 2) << "the call was not made again";
    fault = {};
    EXPECT_EQ(slurp(dir / "x"), slurp(dir / "want"));
  }
  short_writes = true;
  save_npz(dir / "x", e.tensors(false));
  short_writes = false;
  EXPECT_EQ(slurp(dir / "x"), slurp(dir / "want"));
}

// A timer interrupts system calls a thousand times a second.
TEST(Save, UnderSignals) {
  const TempDir dir;
  struct sigaction quiet = {}, before;
  quiet.sa_handler = [](int) {};  // without SA_RESTART
  ::sigaction(SIGALRM, &quiet, &before);
  const itimerval often{{0, 1000}, {0, 1000}}, never{};
  std::vector<float> values(1'000'000, 1.5f);
  const std::vector<TensorToSave> t = {{"a", DType::F32, {1'000'000}, std::as_bytes(std::span(values))}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  for (int i = 0; i < 10; ++i) save_safetensors(dir / "x", t);
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
  EXPECT_EQ(Weights::read(Weights::open(dir / "x").at("a")), values);
}

// In a program without standard streams, output to them must not end up in the checkpoint.
TEST(Save, ClosedStandardStreams) {
  const TempDir dir;
  const pid_t child = ::fork();
  if (child == 0) {
    for (int fd : {0, 1, 2}) ::close(fd);
    try {
      io::AtomicFile file("test", dir / "x");
      file.write("good");
      for (int fd : {0, 1, 2}) {
        const ssize_t n = ::write(fd, "noise", 5);
        if (n >= 0) ::_exit(2);
      }
      file.commit();
      ::_exit(0);
    } catch (...) {
      ::_exit(1);
    }
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(slurp(dir / "x"), "good");
}

// A child saves one checkpoint after another and is killed at a random time: a complete checkpoint always exists.
TEST(Save, KilledAtAnyTime) {
  const TempDir dir;
  constexpr std::size_t kCount = 60'000;
  std::mt19937 random(17);
  int first = 0;
  for (int round = 0; round < 200; ++round) {
    const Save save = kBoth[round / 2 % 2];
    const std::string path = dir / (round / 2 % 2 ? "x.npz" : "x.safetensors");
    const ino_t before = file_number(path);
    const pid_t child = ::fork();
    if (child == 0) {
      if (round % 4 == 3) fault = {Call::Open, 2, EOPNOTSUPP};
      for (int i = first + 1;; ++i) {
        const std::vector<float> values(kCount, static_cast<float>(i));
        const std::vector<TensorToSave> t = {{"a", DType::F32, {kCount}, std::as_bytes(std::span(values))},
                                             {"b", DType::F32, {1}, std::as_bytes(std::span(values)).first(4)}};
        try {
          save(path, t);
        } catch (...) {
          ::_exit(1);
        }
      }
    }
    // on a busy machine the child starts slowly, so every tenth round waits until the old file was replaced
    while (file_number(path) == (round % 10 == 0 ? before : 0)) ::usleep(100);
    ::usleep(static_cast<useconds_t>(random() % 4000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child could not save";
    std::vector<float> a, b;
    if (round / 2 % 2) {
      const auto read = read_npz(path);
      const auto va = read.at("a").values<float>(), vb = read.at("b").values<float>();
      a.assign(va.begin(), va.end()), b.assign(vb.begin(), vb.end());
    } else {
      const Weights w = Weights::open(path);
      a = Weights::read(w.at("a")), b = Weights::read(w.at("b"));
    }
    ASSERT_EQ(a, std::vector<float>(kCount, b.at(0))) << "round " << round;
    first = static_cast<int>(b[0]);
  }
  EXPECT_GT(first, 0);
  // a kill between two calls, or without unnamed files, leaves a file, which the next save removes
  save_safetensors(dir / "x.safetensors", {});
  EXPECT_EQ(files_in(dir), 2u);
}
