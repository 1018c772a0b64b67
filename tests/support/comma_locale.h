// RAII: sets a locale with a decimal comma (de_DE.UTF-8) for C and C++. If it is not installed, localedef builds it in
// a temporary folder from the locale sources (Debian's package `locales`), if these are installed.
#pragma once

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <locale>
#include <stdexcept>
#include <string>

#include "data.h"

class CommaLocale {
 public:
  CommaLocale() {
    if (set()) return;
    const std::string made = "localedef -i de_DE -f UTF-8 " + (folder_ / "de_DE.UTF-8") + " >/dev/null 2>&1";
    if (std::system(made.c_str()) != 0) return;
    ::setenv("LOCPATH", folder_.path.c_str(), 1);
    set();
  }
  ~CommaLocale() {
    std::locale::global(std::locale::classic());
    std::setlocale(LC_ALL, "C");
  }
  CommaLocale(const CommaLocale&) = delete;
  CommaLocale& operator=(const CommaLocale&) = delete;
  // Returns true if printf and C++ streams use a decimal comma now.
  bool there() const {
    char text[8];
    std::snprintf(text, sizeof text, "%.1f", 0.5);
    return text[1] == ',' && std::use_facet<std::numpunct<char>>(std::locale()).decimal_point() == ',';
  }

 private:
  static bool set() {
    if (!std::setlocale(LC_ALL, "de_DE.UTF-8")) return false;
    std::locale::global(std::locale("de_DE.UTF-8"));
    return true;
  }
  TempDir folder_;
};
