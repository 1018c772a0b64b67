// Statistical tests of distributions. Seeds are fixed, so results are reproducible.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numbers>
#include <vector>

inline double normal_below(double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

struct Moments {
  double mean = 0, std = 0, skewness = 0, kurtosis = 0;  // kurtosis: 3 for normal numbers
};
template <class T>
Moments moments(const std::vector<T>& v) {
  const auto n = static_cast<double>(v.size());
  Moments m;
  for (const T x : v) m.mean += static_cast<double>(x) / n;
  double second = 0, third = 0, fourth = 0;
  for (const T x : v) {
    const double d = static_cast<double>(x) - m.mean;
    second += d * d / n, third += d * d * d / n, fourth += d * d * d * d / n;
  }
  m.std = std::sqrt(second);
  m.skewness = third / (second * m.std), m.kurtosis = fourth / (second * second);
  return m;
}

// The Kolmogorov-Smirnov distance times the square root of the count. For a continuous distribution it exceeds 1.95
// once in 1000 times.
template <class T>
double kolmogorov_smirnov(std::vector<T> v, const std::function<double(double)>& below) {
  std::sort(v.begin(), v.end());
  const auto n = static_cast<double>(v.size());
  double far = 0;
  for (std::size_t k = 0; k < v.size(); ++k) {
    const double p = below(static_cast<double>(v[k])), i = static_cast<double>(k);
    far = std::max({far, p - i / n, (i + 1) / n - p});
  }
  return far * std::sqrt(n);
}

// Pearson's chi square, standardized by its mean and standard deviation: approximately normal for many classes.
inline double chi_square(const std::vector<double>& seen, const std::vector<double>& expected) {
  double sum = 0;
  for (std::size_t k = 0; k < seen.size(); ++k) sum += (seen[k] - expected[k]) * (seen[k] - expected[k]) / expected[k];
  const auto freedom = static_cast<double>(seen.size() - 1);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

template <class T>
double correlation(const std::vector<T>& a, const std::vector<T>& b) {
  const Moments p = moments(a), q = moments(b);
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k)
    sum += (static_cast<double>(a[k]) - p.mean) * (static_cast<double>(b[k]) - q.mean);
  return sum / (static_cast<double>(a.size()) * p.std * q.std);
}
