// The syntax tree of a template. All nodes are in one list, so that destroying a tree does not recurse.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "lightcone/io/jinja/lexer.h"
#include "lightcone/io/jinja/value.h"

namespace lc::jinja {

// A node of the tree. `Kind` lists the contents of each kind.
struct Node {
  enum class Kind : std::uint8_t {
    // expressions
    Literal,    // value
    Name,       // text
    ListOf,     // parts
    TupleOf,    // parts
    DictOf,     // parts: key, value, key, ...
    Member,     // parts[0] . text
    Item,       // parts[0] [ parts[1] ]
    Slice,      // parts[0] [ parts[1] : parts[2] : parts[3] ]; bounds may be null
    Call,       // parts[0] ( parts[1...], named )
    Filter,     // parts[0] | text ( parts[1...], named ); parts[0] is null in a filter of a block
    Test,       // parts[0] is text ( parts[1...] )
    Unary,      // text parts[0]: "-", "+", "not"
    Binary,     // parts[0] text parts[1]
    Join,       // parts[0] ~ parts[1] ~ ...
    Compare,    // parts[0] words[0] parts[1] words[1] parts[2] ...
    And,        // parts[0] and parts[1]
    Or,         // parts[0] or parts[1]
    Condition,  // parts[1] if parts[0] else parts[2]; parts[2] may be null
    // statements
    Data,      // value
    Print,     // parts[0]
    Block,     // parts, in order
    If,        // parts: condition, block, condition, block, ..., optionally the block of else
    For,       // parts: target, members, condition or null, block, block of else or null
    Set,       // parts: target, value
    SetBlock,  // parts: target, filter or null, block
    Macro,     // text ( words ): parts[0] block, then the default of each parameter or null; rest, named_rest
    FilterOf,  // parts: filter, block
    With,      // parts: block, target, value, target, value, ...
    Scope,     // parts[0], with its own variables
    Break,
    Continue
  };
  Kind kind;
  std::uint32_t line = 0;
  int depth = 1;
  std::string text;
  Value value = {};
  std::vector<const Node*> parts = {};
  std::vector<std::string> words = {};
  std::vector<std::pair<std::string, const Node*>> named = {};
  bool rest = false, named_rest = false;  // true if the block of a macro uses varargs, or kwargs
};

// A parsed template. It owns the nodes.
struct Tree {
  std::deque<Node> nodes;
  const Node* root = nullptr;
};

// Parses a template. Throws SyntaxFault.
Tree parse(std::string_view source);

}  // namespace lc::jinja
