#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <string>
#include <string_view>
#include <vector>

#include "gspmd/base/arena.h"
#include "gspmd/formats/hlo_text.h"
#include "gspmd/ops/op_def.h"

namespace gspmd {

// Writes one module as HLO text. Private to print_hlo.
//   hlo_printer.cc        module, computations, instructions
//   hlo_print_attrs.cc    attributes
//   hlo_print_literal.cc  constants
class HloPrinter {
 public:
  // Where `write` is null everything is kept for take().
  explicit HloPrinter(const PrintOptions& options,
                      const std::function<void(std::string_view)>* write = nullptr)
      : options_(options), write_(write) {}
  void module(const Module& m);
  void instruction(const Instr& i);
  std::string take() { return std::move(out_); }

 private:
  void hand_on(size_t at_least);  // writes what there is, if it is so much
  void header(const Module& m);
  void entry_layout(const ModuleAttrs& a);
  void aliases(const ModuleAttrs& a);
  void booleans(std::string_view name, const std::vector<bool>& values);
  void stack_tables(const StackTables& t);
  void computation(const Computation& c, bool is_entry);
  void choose_names(const Computation& c);
  void name(std::string_view text);  // with '%' where it would be read as something else
  void name_of_instr(const Instr& i);
  void operands(const Instr& i);

  // hlo_print_attrs.cc
  void own_attributes(const Instr& i);
  void field_value(const Field& f, void* member);
  void dims(absl::Span<const int64_t> d);
  void slices(const SliceAttrs& a);
  void padding(const PadAttrs& a);
  void window(Window w);
  void conv_dims(const ConvDims& c);
  void groups(const DeviceGroups* g);
  void pairs(const PermuteAttrs& a);
  void called(const Instr& i);
  void metadata(const Metadata& m);
  void common_attributes(const Instr& i);
  void attribute(std::string_view name, std::string_view raw);  // nothing where `raw` is empty
  void string(std::string_view text);
  void integer(int64_t n);

  // hlo_print_literal.cc
  void literal(const Literal& l);
  void array(const Literal& l, int d, int64_t first);

  static constexpr size_t kPiece = 1 << 18;
  const PrintOptions options_;
  const std::function<void(std::string_view)>* write_;
  std::string out_;
  Arena scratch_;
  absl::flat_hash_map<const Instr*, std::string_view> made_names_;  // of those without a name
  absl::flat_hash_map<std::string_view, int> taken_;
};

// Element i as it is written in a constant: `1`, `true`, `0.1`, `-0.0`, `nan`, `(1, 2)`.
void append_element(std::string* out, const Literal& literal, int64_t i);

}  // namespace gspmd
