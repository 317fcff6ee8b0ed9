#pragma once

#include <absl/container/flat_hash_map.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gspmd/formats/mlir/cursor.h"
#include "gspmd/formats/mlir/program.h"

namespace gspmd::mlir {

// The reader of texts, in pieces:
//
//   text_reader.cc   operations in generic form, regions, values, the whole file
//   text_types.cc    types; text_attrs.cc  attributes and locations; text_dense.cc  constants
//   pretty_forms.cc  the pretty forms of builtin, func and sdy; pretty_stablehlo.cc  of the others
class TextReader {
 public:
  TextReader(Context& context, std::shared_ptr<const SourceText> source)
      : context_(context), cursor_(std::move(source)) {}

  Program run();

  // What the pretty forms are written with.
  Cursor& cursor() { return cursor_; }
  ValueId operand(Op* op);  // the next %value, added to op's operands
  void operands(Op* op);    // one or more, comma-separated
  void maybe_operands(Op* op);
  Shape type();
  std::vector<Shape> types_until(std::string_view close);
  Attr attribute();
  void attribute_dict(Attrs* into);  // `{a = 1, b}`
  Attr integers();                   // `[1, 2]` as an array of integers
  Attr number_attribute(bool may_have_type = true);
  Attr struct_attribute(std::string name);  // `<a = 1, b = [2]>` or `<WORD>`
  void results(const std::vector<Shape>& types) { result_types_ = types; }
  // `(A, B) -> (C, D)` or `(A) -> C`.
  void function_type_tail(Op* op);
  // `: T` for all operands and results alike, or a function type.
  void type_tail(Op* op);
  void set(Op* op, std::string key, Attr value) {
    op->attrs.emplace_back(std::move(key), std::move(value));
  }
  // A region in braces. `names` and `types`: arguments that the operation itself has declared.
  void region(Op* op, const std::vector<std::pair<std::string, Shape>>& arguments);
  // `(%a: tensor<..>, %b: ...)`, each with an optional attribute dictionary and location.
  std::vector<std::pair<std::string, Shape>> arguments(std::vector<Attr>* attrs);
  std::string value_name();  // %a, without %
  ValueId define(const std::string& name, Shape type);
  ValueId value(size_t at, const std::string& name);
  Shape type_of(ValueId v) const { return program_.types[v]; }
  Context& context() { return context_; }
  void maybe_location(Op* op);

 private:
  using Bound = std::pair<ValueId, int64_t>;  // the first value of a name, and how many
  struct DepthGuard {
    explicit DepthGuard(TextReader* reader) : reader_(*reader) { reader_.enter(); }
    ~DepthGuard() { --reader_.depth_; }
    TextReader& reader_;
  };
  void enter();

  // text_reader.cc
  void top_level();
  void find_aliases();
  void skip_alias();
  void resources();
  Op operation();
  void generic_form(Op* op);
  void pretty_form(Op* op);
  void bind(const std::string& name, Bound to);
  void define_results(Op* op, const std::vector<std::pair<std::string, int64_t>>& names);

  // text_types.cc
  Shape tensor_type();
  Shape scalar_type();
  ElementType element_type();
  std::optional<ElementType> try_element_type();

  // text_attrs.cc
  Attr hash_attribute();
  Attr alias_attribute(size_t at, const std::string& name);
  Attr typed_array();
  Attr struct_field();
  Location location();
  Location location_body();
  Location alias_location(size_t at, const std::string& name);

  // text_dense.cc
  Attr dense();
  Attr dense_resource();
  void dense_elements(Shape shape, int d, bool* is_splat);
  void dense_element(ElementType type);
  void append(uint64_t bits, int bytes);
  const Literal* literal_of(size_t at, Shape shape, bool splat);
  const Literal* literal_of_bytes(size_t at, Shape shape, std::string_view bytes);

  Context& context_;
  Cursor cursor_;
  Program program_;
  std::vector<Shape> result_types_;  // of the operation at hand
  absl::flat_hash_map<std::string, Bound> values_;
  std::vector<std::pair<std::string, Bound>> shadowed_;  // what names stood for; no values: nothing
  // Where `#name =` and `!name =` stand, with their sign: read when asked for, since they may stand
  // behind their uses.
  absl::flat_hash_map<std::string, size_t> aliases_;
  absl::flat_hash_map<std::string, Location> locations_;
  std::vector<std::pair<Literal*, std::string>> pending_resources_;
  std::vector<std::byte> bytes_;
  int depth_ = 0;
};

// Reads the pretty form of op->name (the name has been read), or says that there is none.
bool read_pretty_form(TextReader& reader, Op* op);
bool read_stablehlo_form(TextReader& reader, Op* op);
// [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f] as three lists of symbols and numbers.
Attr read_conv_labels(TextReader& reader);

}  // namespace gspmd::mlir
