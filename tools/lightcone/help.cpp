#include "help.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <vector>

namespace lc::tool {
namespace {

constexpr std::size_t kDescriptions = 34;  // the column in which the descriptions of options begin

// Appends `text` to `page` from column `at` on, broken at spaces; further lines are indented by `indent`.
void put(std::string& page, const std::string& text, std::size_t at, std::size_t indent, std::size_t columns) {
  std::istringstream words(text);
  bool first = true;
  for (std::string word; words >> word; first = false) {
    if (!first && at + 1 + word.size() > columns) {
      page += '\n' + std::string(indent, ' ');
      at = indent;
    } else if (!first) {
      page += ' ', ++at;
    }
    page += word;
    at += word.size();
  }
  page += '\n';
}

// Returns whether the description of an option or a subcommand, or a further line of one, begins in its column.
bool has_description(const std::string& line) {
  return line.size() > kDescriptions && line[0] == ' ' && line[kDescriptions] != ' ' &&
         line.compare(kDescriptions - 2, 2, "  ") == 0;
}

std::size_t terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return std::clamp<std::size_t>(known ? size.ws_col : 100, 72, 100);
}

}  // namespace

std::string wrap_help(const std::string& page, std::size_t columns) {
  std::string wrapped, head, text;  // `text` is a paragraph, or a description that begins behind `head`
  const auto end = [&] {
    if (!text.empty()) put(wrapped += head, text, head.size(), head.size(), columns);
    head.clear(), text.clear();
  };
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    const bool description = has_description(line);
    if (!description && (line.empty() || line[0] == ' ')) {
      end();
      wrapped += line + '\n';
      continue;
    }
    const std::string before = description ? line.substr(0, kDescriptions) : "";
    const bool goes_on = description ? before.find_first_not_of(' ') == before.npos && !head.empty()
                                     : head.empty() && line.rfind("Usage: ", 0) != 0;
    if (!goes_on) end(), head = before;
    text += line.substr(before.size()) + ' ';
    if (line.back() == ':' && !description) end();
  }
  end();
  return wrapped;
}

HelpFormatter::HelpFormatter() { column_width(kDescriptions); }

std::string HelpFormatter::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const {
  return wrap_help(CLI::Formatter::make_help(app, std::move(name), mode), terminal_columns());
}

}  // namespace lc::tool
