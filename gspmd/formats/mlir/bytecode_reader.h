#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gspmd/formats/mlir/bytes.h"
#include "gspmd/formats/mlir/program.h"

namespace gspmd::mlir {

// Properties of one operation: the attributes of its definition, by name.
struct OpForm {
  std::string_view name;        // with its version
  std::string_view attributes;  // in the order of the encoding, with commas; '?' before optional
};
const OpForm* vhlo_form(std::string_view name);  // null if unknown
const OpForm* sdy_form(std::string_view name);
// From VHLO's operations and attributes to those of StableHLO's texts.
void to_stablehlo(Op* op);

// The reader of bytecode, in pieces:
//
//   bytecode_reader.cc  sections, strings, names of operations, resources
//   bytecode_ir.cc      operations, regions, values
//   bytecode_attrs.cc   attributes and types of the builtin dialect, by index
//   bytecode_vhlo.cc    those of VHLO; bytecode_sdy.cc  those of sdy
//   vhlo.cc             VHLO's operations
class BytecodeReader {
 public:
  BytecodeReader(Context& context, std::string_view bytes, const std::string& file_name);
  Program run();

 private:
  enum class Dialect : uint8_t { kBuiltin, kVhlo, kSdy, kOther };
  struct DialectName {
    Dialect dialect = Dialect::kOther;
    std::string_view name;
  };
  // A type: of a value, or of a function.
  struct Type {
    Shape shape;  // null for what no value of StableHLO has
    bool is_function = false;
    std::vector<uint64_t> arguments, results;  // of a function: their numbers
    unsigned width = 0;                        // bits of an integer or float type
    bool is_unsigned = false;
    bool is_tf32 = false;  // in algorithms of dots only
  };
  // An encoded attribute or type, decoded when first asked for.
  template <typename T>
  struct Entry {
    DialectName dialect;
    Bytes bytes;
    bool is_text = false;
    enum class State : uint8_t { kEncoded, kBusy, kDecoded } state = State::kEncoded;
    T value;
    size_t parts = 1;  // of an attribute, with all that it holds
  };
  struct OpName {
    DialectName dialect;
    std::string_view name;
  };

  // bytecode_reader.cc
  void sections(Bytes all);
  Bytes section(Bytes* from, int* id);
  Bytes needed(int id, std::string_view what);
  void strings();
  void dialects();
  void offsets();
  void properties();
  void resources();
  std::string_view string(Bytes* b);
  DialectName dialect(Bytes* b);

  // bytecode_ir.cc
  struct Scope {
    std::vector<ValueId> numbers;  // values by their numbers
    size_t next = 0;               // the number of the next value
  };
  void block(Bytes* b, Scope* scope, Region* region, bool has_region);
  void block_arguments(Bytes* b, Scope* scope, Region* region);
  void operation(Bytes* b, Scope* scope, Op* op);
  void op_properties(Bytes* b, const OpName& name, Op* op);
  void op_regions(Bytes* b, Scope* scope, Op* op);
  void region(Bytes* b, Scope* scope, Region* to);
  void skip_use_lists(Bytes* b, size_t values);
  void define(Bytes* b, Scope* scope, ValueId v);
  ValueId new_value(Bytes* b, uint64_t type);
  int32_t location(Bytes* b, uint64_t attr);
  void finish_function(Bytes* b, Op* op);
  bool is_cast(const Op& op) const;

  // bytecode_attrs.cc
  const Attr& attr(Bytes* from, uint64_t index);
  const Attr& attr_ref(Bytes* b) { return attr(b, b->varint()); }
  const Type& type(Bytes* from, uint64_t index);
  const Type& type_ref(Bytes* b) { return type(b, b->varint()); }
  Attr text_attr(Bytes* b);
  Type text_type(Bytes* b);
  Attr builtin_attr(Bytes* b);
  Type builtin_type(Bytes* b);
  Attr builtin_location(Bytes* b, uint64_t code);
  Attr dense_array(Bytes* b);
  Attr dense_resource(Bytes* b);
  Attr attr_list(Bytes* b);
  Attr dictionary(Bytes* b);
  Attr type_attr(Bytes* b);
  Attr number(Bytes* b, bool real);
  const Literal* literal(Bytes* b, Shape shape, std::string_view data);
  Type scalar(Bytes* b, std::string_view name);
  Type complex(Bytes* b);
  Type tensor(Bytes* b);
  Type tuple(Bytes* b);
  Type function(Bytes* b);

  // bytecode_vhlo.cc
  Attr vhlo_attr(Bytes* b);
  Attr vhlo_enum(Bytes* b, uint64_t code);
  Type vhlo_type(Bytes* b);
  // bytecode_sdy.cc
  Attr sdy_attr(Bytes* b);
  std::string sdy_sharding(Bytes* b, bool unreduced);
  std::string sdy_dimension(Bytes* b);
  std::string sdy_rule(Bytes* b);
  std::string joined(Bytes* b);  // a list of attributes' texts
  const std::string& text_of(Bytes* b) { return attr_ref(b).text; }

  struct DepthGuard {
    DepthGuard(BytecodeReader* reader, const Bytes& at);
    ~DepthGuard() { --reader_.depth_; }
    BytecodeReader& reader_;
  };

  Context& context_;
  std::string_view bytes_;
  const std::string& file_;
  Bytes sections_[9];
  bool has_section_[9] = {};
  std::vector<std::string_view> strings_;
  std::vector<DialectName> dialects_;
  std::vector<OpName> op_names_;
  std::vector<Entry<Attr>> attrs_;
  std::vector<Entry<Type>> types_;
  std::vector<Bytes> properties_;
  std::vector<std::string_view> resources_;
  std::vector<int32_t> locations_;  // by attribute; kUnknownLocation
  Program program_;
  size_t parts_ = 0;  // of the attribute that is being decoded
  int depth_ = 0;
};

}  // namespace gspmd::mlir
