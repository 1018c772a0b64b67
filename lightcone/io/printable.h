// Makes texts from files safe for people to read: nothing in them can move a cursor, set a title, reverse the order of
// a line, or fill a screen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lightcone/base/error.h"

namespace lc {

// Returns the text with control and format characters (escapes, line ends, bidi controls, characters without width) and
// invalid UTF-8 spelled out as \x1b or \u{202e}. At most `limit` bytes are kept; a longer text ends with "...".
std::string printable(std::string_view text, std::size_t limit = 1000);
// The same within quotes, short enough for a sentence.
std::string in_quotes(std::string_view text);
// Returns the output of a model for a terminal, of any length: lines, tabs and all letters are kept; control characters
// and invalid UTF-8 are spelled out.
std::string for_terminal(std::string_view text);

// Returns an Error about a file. The message is printable, whatever its parts contain.
template <class... Ts>
Error file_error(std::string_view op, std::string_view path, const Ts&... problem) {
  return Error(op, printable(path, 500) + ": " + printable(str_cat(problem...)));
}

}  // namespace lc
