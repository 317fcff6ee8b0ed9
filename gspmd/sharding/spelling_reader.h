#pragma once

#include <cctype>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gspmd/sharding/spelling.h"

namespace gspmd {

// A place in the text of a sharding that moves forward: skips blanks and comments, takes what is
// expected or throws SpellingError at the offset where it is not.
class SpellingReader {
 public:
  SpellingReader(std::string_view text, size_t position) : text_(text), at_(position) {}

  // The offset of the next token.
  size_t position() {
    skip_blanks();
    return at_;
  }
  // Where the last token ended.
  size_t end() const { return at_; }

  bool peek(char c) {
    skip_blanks();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool peek_digit() {
    skip_blanks();
    return at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]));
  }
  bool try_take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void take(std::string_view token) {
    if (!try_take(token)) fail_here("expected '" + std::string(token) + "'");
  }
  // A word of letters, digits, '_', '-', '.' and '$'; empty where there is none.
  std::string_view word() {
    skip_blanks();
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  bool try_word(std::string_view expected) {
    skip_blanks();
    const size_t begin = at_;
    if (word() == expected) return true;
    at_ = begin;
    return false;
  }
  int64_t integer();
  // "a" or 'a', with backslash escapes.
  std::string quoted();
  // A text from here to the brace that closes the one here, both included; strings are respected.
  std::string_view braces();

  // `open` f() ',' f() ... `close`; nothing between them is an empty list.
  template <typename F>
  void list(std::string_view open, std::string_view close, F f) {
    take(open);
    if (try_take(close)) return;
    do {
      f();
    } while (try_take(","));
    take(close);
  }
  std::vector<int64_t> integers(std::string_view open, std::string_view close) {
    std::vector<int64_t> out;
    list(open, close, [&] { out.push_back(integer()); });
    return out;
  }

  [[noreturn]] void fail(size_t offset, std::string message, std::string hint = "") const {
    throw SpellingError{offset, std::move(message), std::move(hint)};
  }
  [[noreturn]] void fail_here(const std::string& message, std::string hint = "");

 private:
  static bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.' ||
           c == '$';
  }
  void skip_blanks();

  std::string_view text_;
  size_t at_;
};

// Parts of the forms that HLO's and sdy's spellings share.

// "a" or "a":(2)4. Where `mesh` is given, its axes may stand by number.
NamedAxis read_axis(SpellingReader* reader, const NamedMesh* mesh);
// {"x", "y", ?}: the braces of one dimension, without a priority behind it.
NamedDim read_dim(SpellingReader* reader, const NamedMesh* mesh, std::vector<size_t>* offsets);
// {"x", "y"}.
std::vector<NamedAxis> read_axes(SpellingReader* reader, const NamedMesh* mesh,
                                 std::vector<size_t>* offsets);
// ["a"=2, "b"=4] or ['a'=2,'b'=4]: the names and sizes of a mesh, checked.
void read_mesh_axes(SpellingReader* reader, NamedMesh* mesh);
// Checks the device ids of a mesh against its axes (`at` is where they stand) and drops those in
// plain order.
void finish_mesh_devices(const SpellingReader& reader, size_t at, NamedMesh* mesh);
// 0,2,1,3: at least one id; their places go to `offsets`.
std::vector<int64_t> read_ids(SpellingReader* reader, std::vector<size_t>* offsets);
// Refuses ids below 0 and ids that stand twice.
void check_ids(const SpellingReader& reader, const std::vector<int64_t>& ids,
               const std::vector<size_t>& offsets);
// [4,2]T(1,0), or [8] alone: the part behind `<=`, in normal form.
IdList read_iota(SpellingReader* reader);
// max{...}, or nothing before the brace for a sum.
Combiner read_combiner(SpellingReader* reader);

// What is wrong with the axes of a sharding, in the order dims, replicated, unreduced, manual.
// Without a mesh only what can be told from the names: an axis (or overlapping parts) used twice.
struct AxisFault {
  size_t index = 0;  // counting all axes in that order
  std::string message;
  std::string hint;
};
std::optional<AxisFault> find_axis_fault(const ShardingSpelling& s, const NamedMesh* mesh);
// Throws SpellingError for a fault, at the offset of its axis.
struct AxisOffsets {
  std::vector<size_t> dims, replicated, unreduced, manual;
};
void check_axes(const SpellingReader& reader, const ShardingSpelling& s, const NamedMesh* mesh,
                const AxisOffsets& offsets);

// ['a'=2,'b'=4], device_ids=([4,2]T(1,0)): a mesh of HLO behind `mesh`. The ids may be missing.
NamedMesh read_hlo_mesh(SpellingReader* reader);
// The named form of HLO, behind the word that it starts with, without the closing brace.
enum class MeshWord : uint8_t { kMesh, kMaximalMesh };
void read_named(SpellingReader* reader, MeshWord word, ShardingSpelling* s);

// Throws Error for a tile assignment that no text could say; brings its list of devices to normal
// form.
void check_tiled(ShardingSpelling* s);
// A tile assignment that splits nothing and has one kind of subgroup says no more than the kind:
// {devices=[1,1,8]<=[8] last_tile_dim_replicate} becomes {replicated}.
void use_short_form(ShardingSpelling* s);

}  // namespace gspmd
