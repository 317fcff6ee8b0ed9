#include "gspmd/formats/mlir/bytecode_reader.h"

#include <fmt/format.h>

#include "gspmd/formats/mlir/reader.h"

namespace gspmd::mlir {
namespace {

constexpr std::string_view kMagic = "ML\xEFR";
constexpr int kMaxDepth = 200;
constexpr uint64_t kNewestVersion = 6;

enum Section : uint8_t {
  kStrings,
  kDialects,
  kAttrTypes,
  kAttrTypeOffsets,
  kIr,
  kResources,
  kResourceOffsets,
  kDialectVersion,
  kProperties,
};

uint32_t u32(std::string_view b, size_t at) {
  uint32_t v = 0;
  for (size_t k = 0; k < 4; ++k) v |= uint32_t{static_cast<uint8_t>(b[at + k])} << (8 * k);
  return v;
}
uint32_t u16(std::string_view b, size_t at) {
  return static_cast<uint8_t>(b[at]) | uint32_t{static_cast<uint8_t>(b[at + 1])} << 8;
}

// The module inside of what jax.export serializes: field 13 of a FlatBuffer's root table. Empty if
// it is none.
std::string_view inside_export(std::string_view b) {
  constexpr size_t kModuleField = 13;
  const auto fits = [&](size_t at, size_t size) { return at <= b.size() && size <= b.size() - at; };
  if (!fits(0, 4)) return {};
  size_t table = u32(b, 0);
  if (!fits(table, 4)) return {};
  int64_t vtable = static_cast<int64_t>(table) - static_cast<int32_t>(u32(b, table));
  size_t entry = 4 + 2 * kModuleField;
  if (vtable < 0 || !fits(static_cast<size_t>(vtable), entry + 2)) return {};
  if (u16(b, static_cast<size_t>(vtable)) < entry + 2) return {};
  size_t field = u16(b, static_cast<size_t>(vtable) + entry);
  if (field == 0 || !fits(table + field, 4)) return {};
  size_t vector = table + field + u32(b, table + field);
  if (!fits(vector, 4) || !fits(vector + 4, u32(b, vector))) return {};
  std::string_view module = b.substr(vector + 4, u32(b, vector));
  return module.starts_with(kMagic) ? module : std::string_view();
}

}  // namespace

bool is_bytecode(std::string_view content) {
  return content.starts_with(kMagic) || !inside_export(content).empty();
}

Program read_bytecode(Context& context, std::string_view bytes, const std::string& file_name) {
  std::string_view module = inside_export(bytes);
  return BytecodeReader(context, module.empty() ? bytes : module, file_name).run();
}

BytecodeReader::BytecodeReader(Context& context, std::string_view bytes,
                               const std::string& file_name)
    : context_(context), bytes_(bytes), file_(file_name) {}

BytecodeReader::DepthGuard::DepthGuard(BytecodeReader* reader, const Bytes& at) : reader_(*reader) {
  if (++reader->depth_ <= kMaxDepth) return;
  --reader->depth_;
  at.fail(fmt::format("nested more than {} deep", kMaxDepth));
}

Program BytecodeReader::run() {
  Bytes all(bytes_, 0, bytes_.size(), &file_);
  if (!bytes_.starts_with(kMagic)) all.fail("this is no MLIR bytecode");
  all.raw(kMagic.size());
  uint64_t version = all.varint();
  if (version > kNewestVersion) {
    all.fail(
        fmt::format("bytecode version {}; {} is the newest that is known", version, kNewestVersion),
        "write it for an older version, as jax.export does");
  }
  if (version < 5) {
    all.fail(fmt::format("bytecode version {}; 5 is the oldest that is read", version),
             "write it with a newer jaxlib");
  }
  all.zero_terminated();  // the producer
  sections(all);
  // What a diagnostic would quote: there is no text.
  program_.source = std::make_shared<const SourceText>(file_, "");
  strings();
  dialects();
  offsets();
  properties();
  resources();
  Bytes ir = needed(kIr, "operations");
  Scope scope;
  Region top;
  block(&ir, &scope, &top, false);
  ir.expect_end("the operations");
  if (top.ops.size() != 1 || top.ops[0].name != "builtin.module")
    ir.fail("the outermost operation is no module");
  program_.module = std::move(top.ops[0]);
  return std::move(program_);
}

// Its content; the number of its kind.
Bytes BytecodeReader::section(Bytes* from, int* id) {
  uint8_t head = from->byte();
  *id = head & 0x7F;
  uint64_t length = from->varint();
  if ((head & 0x80) != 0) from->align(from->varint());
  return from->part(length);
}

void BytecodeReader::sections(Bytes all) {
  while (!all.at_end()) {
    int id = 0;
    Bytes content = section(&all, &id);
    if (id > kProperties) all.fail(fmt::format("there is no section {}", id));
    if (has_section_[id]) all.fail(fmt::format("a second section {}", id));
    has_section_[id] = true;
    sections_[id] = content;
  }
}

Bytes BytecodeReader::needed(int id, std::string_view what) {
  if (!has_section_[id])
    Bytes(bytes_, bytes_.size(), bytes_.size(), &file_).fail(fmt::format("has no {}", what));
  return sections_[id];
}

// All lengths, the last string's first, then all strings.
void BytecodeReader::strings() {
  Bytes b = needed(kStrings, "strings");
  std::vector<uint64_t> lengths(b.count());
  for (size_t k = lengths.size(); k > 0; --k) lengths[k - 1] = b.varint();
  for (uint64_t n : lengths) {
    if (n == 0) b.fail("a string without end");
    strings_.push_back(b.raw(static_cast<size_t>(n)).substr(0, static_cast<size_t>(n) - 1));
  }
  b.expect_end("the strings");
}

std::string_view BytecodeReader::string(Bytes* b) {
  uint64_t k = b->varint();
  if (k >= strings_.size()) b->fail(fmt::format("there is no string {}", k));
  return strings_[static_cast<size_t>(k)];
}

BytecodeReader::DialectName BytecodeReader::dialect(Bytes* b) {
  uint64_t k = b->varint();
  if (k >= dialects_.size()) b->fail(fmt::format("there is no dialect {}", k));
  return dialects_[static_cast<size_t>(k)];
}

void BytecodeReader::dialects() {
  Bytes b = needed(kDialects, "dialects");
  size_t n = b.count();
  for (size_t k = 0; k < n; ++k) {
    bool has_version = false;
    uint64_t name = b.varint_with_flag(&has_version);
    if (name >= strings_.size()) b.fail(fmt::format("there is no string {}", name));
    DialectName d{Dialect::kOther, strings_[static_cast<size_t>(name)]};
    if (d.name == "builtin") d.dialect = Dialect::kBuiltin;
    if (d.name == "vhlo") d.dialect = Dialect::kVhlo;
    if (d.name == "sdy") d.dialect = Dialect::kSdy;
    dialects_.push_back(d);
    int id = 0;
    if (has_version) section(&b, &id);
  }
  b.varint();  // the number of all names
  while (!b.at_end()) {
    DialectName d = dialect(&b);
    size_t names = b.count();
    for (size_t k = 0; k < names; ++k) {
      bool registered = false;
      uint64_t name = b.varint_with_flag(&registered);
      if (name >= strings_.size()) b.fail(fmt::format("there is no string {}", name));
      op_names_.push_back({d, strings_[static_cast<size_t>(name)]});
    }
  }
}

// How long every attribute and type is, in groups of one dialect.
void BytecodeReader::offsets() {
  Bytes b = needed(kAttrTypeOffsets, "attributes"), data = needed(kAttrTypes, "attributes");
  size_t num_attrs = b.count(), num_types = b.count();
  while (!b.at_end()) {
    DialectName d = dialect(&b);
    size_t n = b.count();
    for (size_t k = 0; k < n; ++k) {
      bool encoded = false;
      uint64_t size = b.varint_with_flag(&encoded);
      Bytes part = data.part(size);
      if (attrs_.size() < num_attrs) {
        attrs_.push_back({.dialect = d, .bytes = part, .is_text = !encoded});
      } else {
        types_.push_back({.dialect = d, .bytes = part, .is_text = !encoded});
      }
    }
  }
  if (attrs_.size() != num_attrs || types_.size() != num_types)
    b.fail("attributes or types are missing");
  locations_.assign(num_attrs, -2);
}

void BytecodeReader::properties() {
  if (!has_section_[kProperties]) return;
  Bytes b = sections_[kProperties];
  size_t n = b.count();
  for (size_t k = 0; k < n; ++k) properties_.push_back(b.part(b.varint()));
  b.expect_end("the properties");
}

// The bytes of constants that stand outside of the program, in the order of their numbers.
void BytecodeReader::resources() {
  if (!has_section_[kResourceOffsets] || !has_section_[kResources]) return;
  Bytes b = sections_[kResourceOffsets], data = sections_[kResources];
  size_t external = static_cast<size_t>(b.varint());
  for (size_t group = 0; !b.at_end(); ++group) {
    b.varint();  // its name or dialect
    size_t n = b.count();
    for (size_t k = 0; k < n; ++k) {
      string(&b);
      Bytes value = data.part(b.varint());
      bool is_blob = b.byte() == 0;
      std::string_view blob;
      if (is_blob) {
        uint64_t alignment = value.varint(), size = value.varint();
        value.align(alignment);
        blob = value.raw(static_cast<size_t>(size));
      }
      if (group >= external) resources_.push_back(blob);
    }
  }
}

}  // namespace gspmd::mlir
