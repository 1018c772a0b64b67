// Products of few rows, as in decoding. Every number of B is read once and multiplied with all rows, so memory is the
// bound, and what counts is how many bytes are in flight.
//
// If the contracted axis is contiguous, 32 threads share two columns and go along the sum, with four steps of each in
// flight: 2 x 4 reads of 16 bytes a thread. The compiler keeps them in flight only if the kernel declares that two
// blocks must fit a multiprocessor; else it saves registers and sinks the reads to their uses. On an H200, in GB/s of a
// copy's 4,235, for 4096 x 14336, 14336 x 4096 and 4096 x 4096:
//   bf16   4 columns, 2 steps           3969  2518  2269
//          4 columns, 2 steps, 2 blocks 3625  3785  3007
//          2 columns, 4 steps, 2 blocks 4091  4139  3324
//          1 column,  4 steps, 4 blocks 3975  4167  3342
//   Q8_0   4 columns, 1 step            2230  1112
//          2 columns, 4 steps, 2 blocks 2562  2587   (1 column: 1753, 1745; bound by instructions, not by memory)
// If the columns are contiguous, 32 threads read 128 of them, and eight such rows of threads go along the sum.
#include "lightcone/backends/gpu/products/blocks.h"
#include "lightcone/backends/gpu/products/kernels.h"
#include "lightcone/backends/gpu/products/long_sums.h"
#include "lightcone/backends/gpu/products/operand.h"

namespace lc::backends::gpu {

using std::to_string;

namespace {

constexpr int kThreads = 256, kLanes = 32, kWarps = kThreads / kLanes;
constexpr int kSharedColumns = 2;  // shared by 32 threads
constexpr int kResident = 2;       // blocks that must fit a multiprocessor

bool multiples(const std::vector<Dim>& strides, std::int64_t n, std::size_t but_last) {
  for (std::size_t i = 0; i + but_last < strides.size(); ++i)
    if (!multiple(strides[i], n)) return false;
  return true;
}

class FewRows {
 public:
  FewRows(const ProductTexts& t, int rows)
      : t_(t), p_(t.p), rows_(rows), type_(t.sum_type()), w_(p_.needs_64bit_index, kGivenSizes) {}
  KernelText along_sum();
  KernelText along_columns();

 private:
  void row_offsets();
  std::string sum(int j, int r) const { return "c_[" + to_string(j * rows_ + r) + "]"; }
  void add(const std::string& to, const std::string& x, const std::string& y) {
    w_.line(to + " = " + (p_.exact ? to + " + " + x + " * " + y : "lc_mul_add_f(" + x + ", " + y + ", " + to + ")") +
            ";");
  }
  void read_column(int j, int u);
  void multiply(int u);
  void fold(int count);
  void store_sums();
  KernelText done(int columns, int depth, int resident = 1);

  const ProductTexts& t_;
  const Product& p_;
  int rows_;
  std::string type_;
  Writer w_;
  int vector_ = 1, columns_ = 1, fours_ = 0;  // fours_: vectors of four by which A is read; 0: one by one
};

// Rows beyond the last repeat the last one and are not stored.
void FewRows::row_offsets() {
  const std::string m = w_.number(product(p_.rows));
  for (int r = 0; r < rows_; ++r) {
    const std::string n = to_string(r), row = "row" + n;
    w_.let(row, rows_ == 1 ? "0" : n + " < " + m + " ? " + n + " : " + m + " - 1");
    const auto at = w_.indices(p_.rows, row, row + "x");
    w_.let("a" + n + "_p", w_.offset("a_base", at, p_.a.own));
    w_.let("c" + n + "_p", w_.offset("c_base", at, p_.c_rows));
  }
  w_.line(type_ + " c_[" + to_string(rows_ * columns_) + "];");
  w_.line("LC_UNROLL");
  w_.line("for (int i = 0; i < " + to_string(rows_ * columns_) + "; ++i) c_[i] = 0;");
  LongSums(t_, rows_ * columns_).begin(w_);
}

// Reads the numbers of column j from k<u> on into registers b<j>_<u>.
void FewRows::read_column(int j, int u) {
  const std::string n = to_string(j) + "_" + to_string(u), index = "b" + to_string(j) + "_p + k" + to_string(u);
  if (block_format(p_.b.type) && vector_ > 1) return read_sixteen(w_, p_.b, index, "b" + n);
  if (vector_ > 1)
    return w_.line("LC_LOADV(" + element_type(p_.b.type) + ", " + to_string(vector_) + ", b" + n + ", in_b + " + index +
                   ");");
  w_.line("const " + type_ + " b" + n + " = " +
          value(w_, p_.b, "in_b", "b" + to_string(j) + "_p + " + w_.times("k" + to_string(u), p_.b.sum[0])) + ";");
}

void FewRows::multiply(int u) {
  const std::string k = "k" + to_string(u);
  const auto number = [&](int j, int e) -> std::string {
    const std::string n = "b" + to_string(j) + "_" + to_string(u);
    if (vector_ == 1) return n;
    if (block_format(p_.b.type)) return n + "[" + to_string(e) + "]";
    return widened(p_.b.type, "LC_AT(" + n + ", " + to_string(e) + ")");
  };
  for (int r = 0; r < rows_; ++r) {
    w_.open("{");
    const std::string a = "a" + to_string(r) + "_p";
    for (int f = 0; f < fours_; ++f)
      w_.line("LC_LOADV(" + element_type(p_.a.type) + ", 4, x" + to_string(f) + ", in_a + " + a + " + " + k + " + " +
              to_string(4 * f) + ");");
    for (int e = 0; e < vector_; ++e) {
      std::string x = "LC_AT(x" + to_string(e / 4) + ", " + to_string(e % 4) + ")";
      if (!fours_) x = value(w_, p_.a, "in_a", a + " + " + w_.times("(" + k + " + " + to_string(e) + ")", p_.a.sum[0]));
      else x = widened(p_.a.type, x);
      w_.line("const " + type_ + " y" + to_string(e) + " = " + x + ";");
      for (int j = 0; j < columns_; ++j) add(sum(j, r), number(j, e), "y" + to_string(e));
    }
    w_.close();
  }
}

// Adds the lanes' sums in a fixed order. There is no loop around barriers, because some OpenCL compilers get that
// wrong.
void FewRows::fold(int count) {
  for (int i = 0; i < count; ++i) {
    const std::string c = "c_[" + to_string(i) + "]", mine = "fold[LC_THREAD]";
    if (t_.warp >= kLanes) {
      w_.line("for (int s = 16; s > 0; s /= 2) " + c + " = " + c + " + lc_shuffle_" + (p_.exact ? "i" : "f") + "(" + c +
              ", s);");
      continue;
    }
    w_.line("LC_BARRIER;");
    w_.line(mine + " = " + c + ";");
    for (int s = kLanes / 2; s > 0; s /= 2) {
      w_.line("LC_BARRIER;");
      w_.line("if (lane < " + to_string(s) + ") " + mine + " = " + mine + " + fold[LC_THREAD + " + to_string(s) + "];");
    }
    w_.line("LC_BARRIER;");
    w_.line(c + " = fold[LC_THREAD - lane];");
  }
}

void FewRows::store_sums() {
  const std::string m = w_.number(product(p_.rows)), n = w_.number(product(p_.columns));
  for (int j = 0; j < columns_; ++j)
    for (int r = 0; r < rows_; ++r) {
      const std::string column = "column" + to_string(j);
      w_.open("if (lane == " + to_string((j * rows_ + r) % kLanes) + " && " + to_string(r) + " < " + m +
              " && which_column + " + to_string(j) + " < " + n + ") {");
      const auto at = w_.indices(p_.columns, column, "q");
      t_.store(w_, w_.offset("c" + to_string(r) + "_p", at, p_.c_columns), sum(j, r));
      w_.close();
    }
}

KernelText FewRows::done(int columns, int depth, int resident) {
  KernelText k{t_.finished(w_, kThreads, "", resident), kThreads, w_.sizes()};
  k.rows = rows_, k.columns = columns, k.depth = depth;
  return k;
}

KernelText FewRows::along_sum() {
  const bool blocks = block_format(p_.b.type) != nullptr;
  const bool bytes = unit_bytes(p_.b.type) == 1 && !blocks;
  const int wide = p_.b.type == WeightType::F32 ? 4 : bytes || blocks ? 16 : 8;
  const auto fits = [&](const Operand& s, int v) {
    return s.sum[0] == Dim(1) && multiple(s.offset, v) && multiples(s.batch, v, 0) && multiples(s.own, v, 0) &&
           multiple(p_.sum[0], v);
  };
  if (fits(p_.b, wide) && (!blocks || reads_sixteen(p_.b))) vector_ = wide;
  if (vector_ > 1 && fits(p_.a, 4)) fours_ = vector_ / 4;
  columns_ = kSharedColumns;
  const int under_way = rows_ > 2 ? 1 : 4, step = kLanes * vector_;
  if (t_.warp < kLanes) w_.line("LC_SHARED(" + type_ + ", fold, " + to_string(kThreads) + ");");
  w_.line("const int lane = LC_THREAD % " + to_string(kLanes) + ", which = LC_THREAD / " + to_string(kLanes) + ";");
  t_.locate(w_, rows_, kWarps * columns_);
  row_offsets();
  const std::string n = w_.number(product(p_.columns));
  w_.let("which_column", "(tile_n * " + to_string(kWarps) + " + which) * " + to_string(columns_));
  for (int j = 0; j < columns_; ++j) {
    const std::string c = "column" + to_string(j);
    w_.let(c, "which_column + " + to_string(j) + " < " + n + " ? which_column + " + to_string(j) + " : " + n + " - 1");
    w_.let("b" + to_string(j) + "_p", w_.offset("b_base", w_.indices(p_.columns, c, c + "x"), p_.b.own));
  }
  w_.line(w_.index() + " k = k_begin + lane * " + to_string(vector_) + ";");
  const auto pass = [&](int count, const std::string& loop) {
    w_.open(loop);
    for (int u = 0; u < count; ++u) w_.let("k" + to_string(u), "k + " + to_string(u * step));
    for (int u = 0; u < count; ++u)
      for (int j = 0; j < columns_; ++j) read_column(j, u);
    for (int u = 0; u < count; ++u) multiply(u);
    LongSums(t_, rows_ * columns_).end_step(w_, "k - k_begin", count * step, kMostByThread * kLanes);
    w_.close();
  };
  if (under_way > 1)
    pass(under_way,
         "for (; k + " + to_string((under_way - 1) * step) + " < k_end; k += " + to_string(under_way * step) + ") {");
  pass(1, "for (; k < k_end; k += " + to_string(step) + ") {");
  LongSums(t_, rows_ * columns_).finish(w_);
  fold(rows_ * columns_);
  store_sums();
  return done(kWarps * columns_, step, kResident);
}

KernelText FewRows::along_columns() {
  const Operand& b = p_.b;
  const bool wide = multiple(p_.columns.back(), 4) && multiple(b.offset, 4) && multiples(b.batch, 4, 0) &&
                    multiples(b.own, 4, 1) && multiples(b.sum, 4, 0);
  columns_ = wide ? 4 : 1;
  const int side = kLanes * columns_;
  constexpr int kUnderWay = 4;
  w_.line("LC_SHARED(" + type_ + ", fold, " + to_string(kWarps * side) + ");");
  w_.line("const int lane = LC_THREAD % " + to_string(kLanes) + ", which = LC_THREAD / " + to_string(kLanes) + ";");
  t_.locate(w_, rows_, side);
  row_offsets();
  const std::string n = w_.number(product(p_.columns)), m = w_.number(product(p_.rows));
  w_.let("mine", "tile_n * " + to_string(side) + " + lane * " + to_string(columns_));
  w_.let("column0", "mine < " + n + " ? mine : 0");
  w_.let("b_p", w_.offset("b_base", w_.indices(p_.columns, "column0", "x"), b.own));
  w_.line(w_.index() + " k = k_begin + which;");
  const auto pass = [&](int count, const std::string& loop) {
    w_.open(loop);
    for (int u = 0; u < count; ++u) {
      const std::string s = to_string(u);
      w_.let("k" + s, "k + " + to_string(u * kWarps));
      const std::string at = "b_p + " + w_.times("k" + s, b.sum[0]);
      if (wide) w_.line("LC_LOADV(" + element_type(b.type) + ", 4, b" + s + ", in_b + " + at + ");");
      else w_.line("const " + type_ + " b" + s + " = " + value(w_, b, "in_b", at) + ";");
    }
    for (int u = 0; u < count; ++u)
      for (int r = 0; r < rows_; ++r) {
        const std::string s = to_string(u), x = "x" + s + "_" + to_string(r);
        w_.line("const " + type_ + " " + x + " = " +
                value(w_, p_.a, "in_a", "a" + to_string(r) + "_p + " + w_.times("k" + s, p_.a.sum[0])) + ";");
        for (int j = 0; j < columns_; ++j) {
          add(sum(j, r), wide ? widened(b.type, "LC_AT(b" + s + ", " + to_string(j) + ")") : "b" + s, x);
        }
      }
    LongSums(t_, rows_ * columns_).end_step(w_, "k - k_begin", count * kWarps, kMostByThread * kWarps);
    w_.close();
  };
  pass(kUnderWay,
       "for (; k + " + to_string((kUnderWay - 1) * kWarps) + " < k_end; k += " + to_string(kUnderWay * kWarps) + ") {");
  pass(1, "for (; k < k_end; k += " + to_string(kWarps) + ") {");
  LongSums(t_, rows_ * columns_).finish(w_);
  // every thread adds a column of each row, and the first warps store the results after all barriers
  for (int r = 0; r < rows_; ++r) {
    const std::string total = "total" + to_string(r);
    if (r > 0) w_.line("LC_BARRIER;");
    for (int j = 0; j < columns_; ++j)
      w_.line("fold[which * " + to_string(side) + " + lane * " + to_string(columns_) + " + " + to_string(j) +
              "] = " + sum(j, r) + ";");
    w_.line("LC_BARRIER;");
    w_.line(type_ + " " + total + " = fold[LC_THREAD % " + to_string(side) + "];");
    for (int s = 1; s < kWarps; ++s)
      w_.line(total + " = " + total + " + fold[" + to_string(s * side) + " + LC_THREAD % " + to_string(side) + "];");
  }
  w_.let("column", "tile_n * " + to_string(side) + " + LC_THREAD");
  w_.open("if (LC_THREAD < " + to_string(side) + " && column < " + n + ") {");
  const auto at = w_.indices(p_.columns, "column", "q");
  for (int r = 0; r < rows_; ++r) {
    w_.open("if (" + to_string(r) + " < " + m + ") {");
    t_.store(w_, w_.offset("c" + to_string(r) + "_p", at, p_.c_columns), "total" + to_string(r));
    w_.close();
  }
  w_.close();
  return done(side, kWarps);
}

}  // namespace

bool skinny_gemm_reads(const Product& p) { return p.sum.size() == 1 && p.a.bounds.empty() && p.b.bounds.empty(); }

KernelText ProductTexts::skinny_gemm(int rows) const {
  const Operand& b = p.b;
  const bool columns = !(b.sum[0] == Dim(1)) && !b.own.empty() && b.own.back() == Dim(1);
  return columns ? FewRows(*this, rows).along_columns() : FewRows(*this, rows).along_sum();
}

}  // namespace lc::backends::gpu
