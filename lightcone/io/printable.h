// Words that came from a file, made fit for people: nothing in them can move a cursor, set a title, turn the order of
// a line round or fill a screen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lightcone/core/error.h"

namespace lc {

// Text whose control and format characters (escapes, line ends, bidi controls, what has no width) and bytes that are
// not UTF-8 are spelled out, as \x1b or \u{202e}, and of which at most `limit` bytes are kept: a longer one ends with
// "...".
std::string printable(std::string_view text, std::size_t limit = 1000);
// The same within quotes, short enough for a sentence.
std::string in_quotes(std::string_view text);
// What a model says, for a terminal: lines, tabs and every letter stay, control characters and what is not UTF-8 are
// spelled out; of any length.
std::string for_terminal(std::string_view text);

// An Error about a file, clean whatever its parts are.
template <class... Ts>
Error file_error(std::string_view op, std::string_view path, const Ts&... problem) {
  return Error(op, printable(path, 500) + ": " + printable(str_cat(problem...)));
}

}  // namespace lc
