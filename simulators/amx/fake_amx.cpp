// Executes AMX's instructions on x86-64 processors that lack them, so that the machine code of kernels on tiles is
// tested there. It is preloaded and catches the signal of the illegal instruction:
//
//   LIGHTCONE_TILES=assumed LD_PRELOAD=build/lib/libfake_amx.so build/bin/gemm_test
//
// What a processor refuses (a tile that is not configured, shapes that do not fit) ends the process with a message. The
// instructions are those of Intel's Software Developer's Manual, volume 2, "Intel AMX Instruction Set Reference".
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

constexpr int kTiles = 8, kRows = 16, kRowBytes = 64, kColumns = kRowBytes / 4;

struct alignas(64) Config {
  std::uint8_t palette, start_row, reserved[14];
  std::uint16_t row_bytes[16];
  std::uint8_t rows[16];
};
static_assert(sizeof(Config) == 64);

struct alignas(64) Tile {
  std::byte data[kRows][kRowBytes];
  template <class T>
  T at(int row, int i) const {
    T v;
    std::memcpy(&v, data[row] + static_cast<std::size_t>(i) * sizeof(T), sizeof v);
    return v;
  }
};

// Initial-exec: a signal handler may not allocate, as the first access of other thread-local storage does.
#define LC_OF_THREAD [[gnu::tls_model("initial-exec")]] thread_local
LC_OF_THREAD Config t_config = {};
LC_OF_THREAD Tile t_tiles[kTiles] = {};
struct sigaction g_before = {};

[[noreturn]] void refuse(const char* why) {
  for (const char* part : {"fake_amx: a processor refuses this: ", why, "\n"})
    if (::write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  std::abort();
}

// An instruction in VEX encoding with three prefix bytes.
struct Instruction {
  const std::uint8_t* at;
  int map() const { return at[1] & 31; }
  bool extended(int bit) const { return !(at[1] >> bit & 1); }  // bits 7, 6 and 5: R, X and B
  bool wide() const { return at[2] >> 7; }
  int third() const { return ~at[2] >> 3 & 15; }  // vvvv
  bool long_vectors() const { return at[2] >> 2 & 1; }
  int prefix() const { return at[2] & 3; }  // none, 66, F3, F2
  int opcode() const { return at[3]; }
  int mod() const { return at[4] >> 6; }
  int reg() const { return (at[4] >> 3 & 7) + 8 * extended(7); }
  int rm() const { return at[4] & 7; }
};

// The general registers in the order of their numbers.
std::int64_t general(const ucontext_t& c, int number) {
  static constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                   REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return c.uc_mcontext.gregs[kOrder[number]];
}

// An operand in memory. With a scaled index, its register is the stride of a tile's rows.
struct Memory {
  std::int64_t address, stride = 0;
  int length;  // bytes of ModRM, SIB and displacement
};
Memory memory(const ucontext_t& c, const Instruction& i) {
  const std::uint8_t* p = i.at + 5;
  Memory m{};
  int base = i.rm() + 8 * i.extended(5);
  bool without_base = i.mod() == 0 && i.rm() == 5;
  if (without_base) refuse("an address relative to the instruction");
  if (i.rm() == 4) {
    const int sib = *p++, index = (sib >> 3 & 7) + 8 * i.extended(6);
    base = (sib & 7) + 8 * i.extended(5);
    without_base = i.mod() == 0 && (sib & 7) == 5;
    if (index != 4) m.stride = general(c, index) << (sib >> 6);
  }
  if (!without_base) m.address = general(c, base);
  if (i.mod() == 1) {
    m.address += static_cast<std::int8_t>(*p++);
  } else if (i.mod() == 2 || without_base) {
    std::int32_t more;
    std::memcpy(&more, p, sizeof more);
    m.address += more, p += sizeof more;
  }
  m.length = static_cast<int>(p - (i.at + 4));
  return m;
}

void expect_tile(int t) {
  if (t_config.palette != 1) refuse("no tiles are configured");
  if (t >= kTiles) refuse("there are eight tiles");
  if (!t_config.rows[t] || !t_config.row_bytes[t]) refuse("a tile without rows");
}

void configure(const Config& c) {
  if (c.palette > 1) refuse("a palette that does not exist");
  for (const std::uint8_t r : c.reserved)
    if (r) refuse("reserved bytes of the configuration");
  if (c.start_row) refuse("a first row other than 0");
  for (int t = 0; t < 16; ++t) {
    if (t >= kTiles && (c.rows[t] || c.row_bytes[t])) refuse("a tile past the eighth is configured");
    if (c.rows[t] > kRows || c.row_bytes[t] > kRowBytes) refuse("a tile of more than 16 rows of 64 bytes");
    if (!c.rows[t] != !c.row_bytes[t]) refuse("a tile with rows or bytes alone");
  }
  t_config = c.palette ? c : Config{};
  std::memset(t_tiles, 0, sizeof t_tiles);
}

void load(int t, const Memory& m) {
  expect_tile(t);
  std::memset(&t_tiles[t], 0, sizeof t_tiles[t]);
  for (int r = 0; r < t_config.rows[t]; ++r)
    std::memcpy(t_tiles[t].data[r], reinterpret_cast<const void*>(m.address + r * m.stride), t_config.row_bytes[t]);
}
void store(int t, const Memory& m) {
  expect_tile(t);
  for (int r = 0; r < t_config.rows[t]; ++r)
    std::memcpy(reinterpret_cast<void*>(m.address + r * m.stride), t_tiles[t].data[r], t_config.row_bytes[t]);
}

// A product of tiles: sums, rows of A and rows of B, each of which holds four bytes of k for every column.
struct Operands {
  Tile& sums;
  const Tile &a, &b;
  int rows, steps, columns;
};
Operands operands(int sums, int a, int b) {
  for (const int t : {sums, a, b}) expect_tile(t);
  if (sums == a || sums == b || a == b) refuse("a product of tiles that are not three");
  const Config& c = t_config;
  if (c.row_bytes[sums] % 4 || c.row_bytes[a] % 4 || c.row_bytes[b] % 4) refuse("rows that are no whole words");
  if (c.rows[sums] != c.rows[a] || c.row_bytes[sums] != c.row_bytes[b] || c.row_bytes[a] / 4 != c.rows[b])
    refuse("shapes of a product that do not fit");
  return {t_tiles[sums], t_tiles[a], t_tiles[b], c.rows[sums], c.row_bytes[a] / 4, c.row_bytes[sums] / 4};
}

// Sums of even and of odd k are apart until the end. A function of its own, because MXCSR is set around it.
[[gnu::noinline]] void add_products(const Operands& o) {
  const auto wide = [](std::uint32_t half) { return std::bit_cast<float>(half << 16); };
  for (int row = 0; row < o.rows; ++row) {
    float sums[2][kColumns] = {};
    for (int k = 0; k < o.steps; ++k)
      for (int n = 0; n < kColumns; ++n) {
        const auto a = o.a.at<std::uint32_t>(row, k), b = o.b.at<std::uint32_t>(k, n);
        sums[0][n] = __builtin_fmaf(wide(a), wide(b), sums[0][n]);
        sums[1][n] = __builtin_fmaf(wide(a >> 16), wide(b >> 16), sums[1][n]);
      }
    for (int n = 0; n < o.columns; ++n) {
      const float sum = o.sums.at<float>(row, n) + (sums[0][n] + sums[1][n]);
      std::memcpy(&o.sums.data[row][4 * n], &sum, sizeof sum);
    }
  }
}
// Subnormal numbers are zeros, as operands and as results, and no exception is raised.
void dot_bf16(const Operands& o) {
  constexpr unsigned kFlushToZero = 1u << 15, kDenormalsAreZeros = 1u << 6, kMasked = 0x1f80;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(kMasked | kFlushToZero | kDenormalsAreZeros);
  add_products(o);
  _mm_setcsr(before);
}

// Bytes of A and of B are signed or unsigned. Sums wrap around.
template <class A, class B>
void dot_int8(const Operands& o) {
  for (int row = 0; row < o.rows; ++row)
    for (int n = 0; n < o.columns; ++n) {
      auto sum = o.sums.at<std::uint32_t>(row, n);
      for (int k = 0; k < 4 * o.steps; ++k)
        sum += static_cast<std::uint32_t>(o.a.at<A>(row, k) * o.b.at<B>(k / 4, 4 * n + k % 4));
      std::memcpy(&o.sums.data[row][4 * n], &sum, sizeof sum);
    }
}

// Executes one instruction. Returns its length, or 0 if it is none of AMX's.
int execute(const ucontext_t& c, const Instruction& i) {
  constexpr int kNone = 0, k66 = 1, kF3 = 2, kF2 = 3;
  if (i.at[0] != 0xc4 || i.map() != 2 || i.wide() || i.long_vectors()) return 0;
  const bool in_registers = i.mod() == 3;
  using Signed = std::int8_t;
  using Unsigned = std::uint8_t;
  if (i.opcode() == 0x49 && i.prefix() == kNone && in_registers) {  // tilerelease
    t_config = {};
    return 5;
  }
  if (i.opcode() == 0x49 && i.prefix() == kNone) {  // ldtilecfg
    const Memory m = memory(c, i);
    Config read;
    std::memcpy(&read, reinterpret_cast<const void*>(m.address), sizeof read);
    configure(read);
    return 4 + m.length;
  }
  if (i.opcode() == 0x49 && i.prefix() == kF2 && in_registers) {  // tilezero
    expect_tile(i.reg());
    std::memset(&t_tiles[i.reg()], 0, sizeof(Tile));
    return 5;
  }
  // tileloadd, tileloaddt1 and tilestored
  if (i.opcode() == 0x4b && !in_registers && i.rm() == 4 && i.prefix() != kNone) {
    const Memory m = memory(c, i);
    if (i.prefix() == kF3) store(i.reg(), m);
    else load(i.reg(), m);
    return 4 + m.length;
  }
  if (i.opcode() == 0x5c && i.prefix() == kF3 && in_registers) {  // tdpbf16ps
    dot_bf16(operands(i.reg(), i.rm(), i.third()));
    return 5;
  }
  if (i.opcode() == 0x5e && in_registers) {
    const Operands o = operands(i.reg(), i.rm(), i.third());
    if (i.prefix() == kF2) dot_int8<Signed, Signed>(o);
    if (i.prefix() == kF3) dot_int8<Signed, Unsigned>(o);
    if (i.prefix() == k66) dot_int8<Unsigned, Signed>(o);
    if (i.prefix() == kNone) dot_int8<Unsigned, Unsigned>(o);
    return 5;
  }
  return 0;
}

void caught(int signal, siginfo_t* info, void* context) {
  auto& c = *static_cast<ucontext_t*>(context);
  auto& at = c.uc_mcontext.gregs[REG_RIP];
  const auto start = at;
  // Signals are slow, and AMX's instructions often stand in a row.
  while (const int length = execute(c, {reinterpret_cast<const std::uint8_t*>(at)})) at += length;
  if (at != start) return;
  if (g_before.sa_flags & SA_SIGINFO) return g_before.sa_sigaction(signal, info, context);
  ::sigaction(signal, &g_before, nullptr);  // the instruction is executed again, and the signal ends the process
}

[[gnu::constructor]] void start() {
  struct sigaction a = {};
  a.sa_sigaction = caught;
  a.sa_flags = SA_SIGINFO;
  ::sigaction(SIGILL, &a, &g_before);
}

}  // namespace
