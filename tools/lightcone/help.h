// The layout of --help.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

namespace lc::tool {

// Sets the text of a help page in lines of at most `columns`. Neighbouring lines without an indent are one paragraph,
// unless the first ends in a colon, and so are the lines of a description. Other indented lines stay as they are,
// because they are examples.
std::string wrap_help(const std::string& page, std::size_t columns);

// Wraps the pages of CLI11 to the terminal, at most 100 columns.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter();
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;
};

}  // namespace lc::tool
