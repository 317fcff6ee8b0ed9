#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gspmd/formats/hlo_lexer.h"
#include "gspmd/ir/module.h"
#include "gspmd/ops/op_def.h"

namespace gspmd {

// Reads one HLO text into one module, in a single pass. Private to parse_hlo.
//   hlo_parser.cc        module, computations
//   hlo_parse_header.cc  header attributes, stack-frame tables
//   hlo_parse_instr.cc   instructions, operands
//   hlo_parse_attrs.cc   attributes common to all instructions, called computations
//   hlo_parse_fields.cc  the operators' own attributes, from OpDef::fields
//   hlo_parse_shape.cc   shapes; hlo_parse_literal.cc constants
class HloParser {
 public:
  HloParser(std::shared_ptr<Context> context, std::shared_ptr<const SourceText> source,
            std::vector<std::string>* warnings);
  std::unique_ptr<Module> parse();

 private:
  using OperandList = absl::InlinedVector<Instr*, 6>;

  // A computation being read.
  struct Scope {
    Computation* computation = nullptr;
    Instr* root = nullptr;
    absl::flat_hash_map<std::string_view, Instr*> names;
    std::vector<Instr*> unnamed;  // nested operands: named at the end
    bool free_operands = false;   // a lone instruction: unknown operands become parameters
  };

  // What is read of an instruction before it can be made.
  struct Draft {
    size_t at = 0;  // of its name, or of the instruction where it has none
    size_t opcode_at = 0;
    const OpDef* def = nullptr;
    std::string_view async_of;  // `negate-start`: the text before "-start"
    bool wraps_async = false;   // `def` is what an async-start runs
    AsyncAttrs async;           // the start's own attributes, then
    Shape shape;                // null: to be inferred
    OperandList operands;
    void* attrs = nullptr;
    uint64_t fields_seen = 0;                          // bit k: def->fields[k]
    uint32_t common_seen = 0;                          // bits of attributes of all instructions
    absl::InlinedVector<Computation*, 2> called;       // by place in def->called
    absl::InlinedVector<Computation*, 2> called_list;  // of def->called_list
    const ShardingSpelling* annotation = nullptr;
    const Metadata* metadata = nullptr;
    Extras extras;
    std::vector<Instr*> predecessors;
    std::string unknown;
  };

  struct DepthGuard;

  // hlo_parser.cc
  void computations();
  void computation();
  void lone_instruction();
  bool starts_computation();
  std::unique_ptr<Scope> open_scope(std::string_view name);
  void body(Scope& scope);
  void finish(std::unique_ptr<Scope> scope, size_t at);
  void name_unnamed(Scope& scope);
  void finish_module();
  void check_entry_layout();
  Computation* inline_computation();

  // hlo_parse_header.cc
  void header();
  void header_attribute();
  void entry_layout();
  void aliases();
  void donors();
  std::vector<int64_t> index_list();
  std::vector<bool> booleans();
  void stack_tables();
  void file_locations();
  void stack_frames();

  // hlo_parse_instr.cc
  Instr* instruction(Scope& scope);
  void shape_and_opcode(Draft* d);
  void opcode(Draft* d);
  void operands(Scope& scope, Draft* d);
  Instr* operand(Scope& scope);
  Instr* nested(Scope& scope, size_t at, Shape stated);
  Instr* lookup(Scope& scope, std::string_view name, size_t at, Shape stated);
  Instr* free_parameter(Scope& scope, std::string_view name, Shape shape, size_t at);
  Instr* tuple_elements(Scope& scope, Instr* tuple, size_t at);
  void parameter_number(Scope& scope, Draft* d);
  void check_draft(Draft* d);
  Instr* make(Scope& scope, Draft* d, std::string_view name);
  void make_async_start(Draft* d);
  bool starts_shape();

  // hlo_parse_attrs.cc
  void attributes(Scope& scope, Draft* d);
  void attribute(Scope& scope, Draft* d);
  bool common_attribute(Scope& scope, Draft* d, std::string_view name, size_t at);
  bool called_attribute(Draft* d, std::string_view name, size_t at);
  bool old_attribute(Draft* d, std::string_view name);
  Computation* called_computation();
  const ShardingSpelling* sharding();
  const Metadata* metadata();
  void metadata_entry(Metadata* m, std::string_view key, size_t at, std::string* rest);
  void control_predecessors(Scope& scope, Draft* d);

  // hlo_parse_fields.cc
  void field(const Field& f, void* attrs);
  void field_value(const Field& f, void* member);
  Dims dims();
  void slices(SliceAttrs* a);
  void padding(PadAttrs* a);
  Window window();
  ConvDims conv_dims();
  uint8_t enum_value(const Field& f);
  const DeviceGroups* device_groups();
  void pairs(PermuteAttrs* a);
  std::string_view text();

  // hlo_parse_shape.cc
  Shape shape();
  Shape array_shape();
  const Layout* layout(int rank);

  // hlo_parse_literal.cc
  const Literal* literal(Shape shape);
  Literal literal_value(Shape shape);
  Literal tuple_literal(Shape shape);
  bool elided_literal();
  void elements(Shape shape, int d);
  void skip_empty(int rank);
  void element(ElementType type);
  uint64_t float_element(ElementType type);
  uint64_t nan_element(ElementType type, std::string_view token, size_t at);
  uint64_t integer_element(ElementType type);

  void warn(size_t at, std::string_view message);
  // Calls f; a SpellingError becomes an Error at its place.
  template <typename F>
  auto spelled(F f);

  std::shared_ptr<Context> shared_context_;
  Context& context_;
  std::shared_ptr<const SourceText> source_;
  std::vector<std::string>* warnings_;
  HloLexer lex_;
  std::unique_ptr<Module> module_;
  absl::flat_hash_map<std::string_view, Computation*> by_name_;
  std::vector<Computation*> done_;  // in the order in which they end: callees first
  std::vector<std::unique_ptr<Scope>> spare_scopes_;
  Computation* entry_ = nullptr;
  size_t entry_at_ = 0, entry_layout_at_ = 0;
  int depth_ = 0;
  absl::flat_hash_map<std::string_view, Shape> shapes_;  // by spelling
  absl::flat_hash_map<std::string_view, const ShardingSpelling*> shardings_;
  std::vector<std::byte> literal_bytes_;
};

inline constexpr int kMaxDepth = 256;

// Counts how deep tuples, operands and computations are nested, so that no text exhausts the stack.
struct HloParser::DepthGuard {
  explicit DepthGuard(HloParser* p) : parser(p) {
    if (++parser->depth_ <= kMaxDepth) return;
    --parser->depth_;
    parser->lex_.fail(parser->lex_.position(),
                      "nested more than " + std::to_string(kMaxDepth) + " deep",
                      "give the inner instructions or tuples names of their own");
  }
  ~DepthGuard() { --parser->depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  HloParser* parser;
};

template <typename F>
auto HloParser::spelled(F f) {
  try {
    return f();
  } catch (const SpellingError& e) {
    lex_.fail(e.offset, e.message, e.hint);
  }
}

}  // namespace gspmd
