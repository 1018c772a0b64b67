// A 512-bit floating-point number (MPFR), the reference for the accuracy of f64 functions. Without MPFR the class is
// empty and those accuracies are not tested.
#pragma once

#if LIGHTCONE_MPFR
#include <mpfr.h>

#include <utility>
#endif

namespace lc::accuracy {

#if LIGHTCONE_MPFR
class Big {
 public:
  Big(double v) {  // implicit conversion, so that 1 + x compiles
    mpfr_init2(v_, 512);
    mpfr_set_d(v_, v, MPFR_RNDN);
  }
  Big(const Big& b) : Big(0.0) { mpfr_set(v_, b.v_, MPFR_RNDN); }
  Big(Big&& b) noexcept : Big(0.0) { mpfr_swap(v_, b.v_); }
  Big& operator=(Big b) noexcept {
    mpfr_swap(v_, b.v_);
    return *this;
  }
  ~Big() { mpfr_clear(v_); }
  static Big pi() {
    Big r(0.0);
    mpfr_const_pi(r.v_, MPFR_RNDN);
    return r;
  }
  double number() const { return mpfr_get_d(v_, MPFR_RNDN); }

  using One = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t);
  using Two = int (*)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);
  static Big of(One f, const Big& a) {
    Big r(0.0);
    f(r.v_, a.v_, MPFR_RNDN);
    return r;
  }
  static Big of(Two f, const Big& a, const Big& b) {
    Big r(0.0);
    f(r.v_, a.v_, b.v_, MPFR_RNDN);
    return r;
  }
  friend Big operator+(const Big& a, const Big& b) { return of(mpfr_add, a, b); }
  friend Big operator-(const Big& a, const Big& b) { return of(mpfr_sub, a, b); }
  friend Big operator*(const Big& a, const Big& b) { return of(mpfr_mul, a, b); }
  friend Big operator/(const Big& a, const Big& b) { return of(mpfr_div, a, b); }
  friend Big operator-(const Big& a) { return 0.0 - a; }
  friend bool operator<(const Big& a, const Big& b) { return mpfr_less_p(a.v_, b.v_) != 0; }
  friend bool operator<=(const Big& a, const Big& b) { return mpfr_lessequal_p(a.v_, b.v_) != 0; }

 private:
  mpfr_t v_;
};

#define LC_BIG(f) \
  inline Big f(const Big& x) { return Big::of(mpfr_##f, x); }
LC_BIG(exp)
LC_BIG(exp2)
LC_BIG(expm1)
LC_BIG(log)
LC_BIG(log2)
LC_BIG(log10)
LC_BIG(log1p)
LC_BIG(sqrt)
LC_BIG(sin)
LC_BIG(cos)
LC_BIG(tan)
LC_BIG(asin)
LC_BIG(acos)
LC_BIG(atan)
LC_BIG(sinh)
LC_BIG(cosh)
LC_BIG(tanh)
LC_BIG(asinh)
LC_BIG(acosh)
LC_BIG(atanh)
LC_BIG(erf)
LC_BIG(erfc)
#undef LC_BIG
#else
class Big {};
#endif

}  // namespace lc::accuracy
