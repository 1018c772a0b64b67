// Metal's vectors of two to four numbers.
#pragma once

namespace metal {

template <class T, int N>
struct vec;

template <class T>
struct __attribute__((aligned(2 * sizeof(T)))) vec<T, 2> {
  T x, y;
  vec() = default;
  vec(T a) : x(a), y(a) {}
  vec(T a, T b) : x(a), y(b) {}
  template <class U>
  explicit vec(const vec<U, 2>& v) : x(T(v.x)), y(T(v.y)) {}
  T& operator[](int i) { return (&x)[i]; }
  const T& operator[](int i) const { return (&x)[i]; }
};
template <class T>
struct __attribute__((aligned(4 * sizeof(T)))) vec<T, 3> {
  T x, y, z;
  vec() = default;
  vec(T a) : x(a), y(a), z(a) {}
  vec(T a, T b, T c) : x(a), y(b), z(c) {}
  template <class U>
  explicit vec(const vec<U, 3>& v) : x(T(v.x)), y(T(v.y)), z(T(v.z)) {}
  T& operator[](int i) { return (&x)[i]; }
  const T& operator[](int i) const { return (&x)[i]; }
};
template <class T>
struct __attribute__((aligned(4 * sizeof(T)))) vec<T, 4> {
  T x, y, z, w;
  vec() = default;
  vec(T a) : x(a), y(a), z(a), w(a) {}
  vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
  vec(vec<T, 2> a, vec<T, 2> b) : x(a.x), y(a.y), z(b.x), w(b.y) {}
  template <class U>
  explicit vec(const vec<U, 4>& v) : x(T(v.x)), y(T(v.y)), z(T(v.z)), w(T(v.w)) {}
  T& operator[](int i) { return (&x)[i]; }
  const T& operator[](int i) const { return (&x)[i]; }
};

template <class T>
struct lc_same {
  typedef T type;  // excluded from template argument deduction
};
#define LC_OPERATOR(op)                                                         \
  template <class T, int N>                                                     \
  inline vec<T, N>& operator op##=(vec<T, N>& a, vec<T, N> b) {                 \
    for (int i = 0; i < N; ++i) a[i] = T(a[i] op b[i]);                         \
    return a;                                                                   \
  }                                                                             \
  template <class T, int N>                                                     \
  inline vec<T, N>& operator op##=(vec<T, N>& a, typename lc_same<T>::type b) { \
    return a op## = vec<T, N>(b);                                               \
  }                                                                             \
  template <class T, int N>                                                     \
  inline vec<T, N> operator op(vec<T, N> a, vec<T, N> b) {                      \
    return a op## = b;                                                          \
  }                                                                             \
  template <class T, int N>                                                     \
  inline vec<T, N> operator op(vec<T, N> a, typename lc_same<T>::type b) {      \
    return a op## = vec<T, N>(b);                                               \
  }                                                                             \
  template <class T, int N>                                                     \
  inline vec<T, N> operator op(typename lc_same<T>::type a, vec<T, N> b) {      \
    return vec<T, N>(a) op b;                                                   \
  }
LC_OPERATOR(+)
LC_OPERATOR(-)
LC_OPERATOR(*)
LC_OPERATOR(/)
LC_OPERATOR(&)
LC_OPERATOR(|)
LC_OPERATOR(^)
LC_OPERATOR(<<)
LC_OPERATOR(>>)
#undef LC_OPERATOR
template <class T, int N>
inline vec<T, N> operator-(vec<T, N> a) {
  for (int i = 0; i < N; ++i) a[i] = -a[i];
  return a;
}

#define LC_VECTORS(T)     \
  typedef vec<T, 2> T##2; \
  typedef vec<T, 3> T##3; \
  typedef vec<T, 4> T##4;
LC_VECTORS(float)
LC_VECTORS(half)
LC_VECTORS(bfloat)
LC_VECTORS(int)
LC_VECTORS(uint)
LC_VECTORS(short)
LC_VECTORS(ushort)
LC_VECTORS(char)
LC_VECTORS(uchar)
LC_VECTORS(long)
LC_VECTORS(ulong)
LC_VECTORS(bool)
#undef LC_VECTORS

}  // namespace metal
