// A module that is preloaded into a test program. It sets a locale with a decimal comma for C and C++, as a program
// with a user interface does that calls setlocale(LC_ALL, "") at its start.
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <locale>

namespace {
struct Commas {
  Commas() {
    if (std::setlocale(LC_ALL, "de_DE.UTF-8")) std::locale::global(std::locale("de_DE.UTF-8"));
    char text[8];
    std::snprintf(text, sizeof text, "%.1f", 0.5);
    if (text[1] == ',') return;
    std::fputs("the locale with commas is not there\n", stderr);
    std::_Exit(1);
  }
} commas;
}  // namespace
