#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gspmd/ir/context.h"
#include "gspmd/ir/literal.h"
#include "gspmd/ir/module.h"

namespace gspmd::mlir {

// An MLIR program as a tree of operations, whatever dialect and syntax it came in: what the reader
// of texts and the reader of bytecode make, and stablehlo/import.h translates.

// An attribute. Dialect attributes that are structs are kDict with their name in `text`
// (#stablehlo.gather<offset_dims = [1]>: "stablehlo.gather"); enumerations are kSymbol
// (#stablehlo<transpose ADJOINT>: "ADJOINT"); all others are kOpaque, with `text` as written.
struct Attr {
  enum class Kind : uint8_t {
    kUnit,
    kBool,
    kInt,
    kFloat,
    kString,
    kSymbol,
    kArray,
    kDict,
    kDense,
    kType,
    kOpaque,
  };
  Kind kind = Kind::kUnit;
  int64_t integer = 0;  // kBool, kInt
  double real = 0;
  std::string text;
  std::vector<Attr> elements;                         // kArray
  std::vector<std::pair<std::string, Attr>> entries;  // kDict
  const Literal* literal = nullptr;                   // kDense
  Shape type;                                         // kType; of kInt and kFloat if written

  const Attr* find(std::string_view name) const;  // in a kDict; null if absent
};
using Attrs = std::vector<std::pair<std::string, Attr>>;
const Attr* find(const Attrs& attrs, std::string_view name);

using ValueId = uint32_t;
struct Region;

// Where an operation comes from: the outermost name ("jit(f)/dot_general") and the innermost file
// position.
struct Location {
  std::string name, file;
  int64_t line = 0;
};

struct Op {
  std::string name;  // with its dialect: "stablehlo.add"
  std::vector<ValueId> operands, results;
  std::vector<Region> regions;
  Attrs attrs;
  size_t place = 0;       // byte offset in the source + 1, 0 = unknown
  int32_t location = -1;  // index in Program::locations

  const Attr* attr(std::string_view key) const { return find(attrs, key); }
};

// A region of one block, which is all that structured programs have.
struct Region {
  std::vector<ValueId> arguments;
  std::vector<Op> ops;
};

struct Program {
  std::vector<Shape> types;  // by value; null where the type is none of StableHLO's
  std::vector<Location> locations;
  Op module;  // builtin.module
  std::shared_ptr<const SourceText> source;
};

// Whether an array has more elements than can be counted with.
bool too_large(absl::Span<const int64_t> dims);

}  // namespace gspmd::mlir
