#include "gspmd/api/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "gspmd/formats/mlir/reader.h"
#include "gspmd/formats/proto/hlo_proto.h"
#include "gspmd/formats/stablehlo/export.h"
#include "gspmd/formats/stablehlo/import.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/propagate/propagate.h"

namespace gspmd {

Format format_named(std::string_view name) {
  if (name == "hlo") return Format::kHloText;
  if (name == "pb") return Format::kHloProto;
  if (name == "mlir") return Format::kStableHlo;
  throw Error(fmt::format("there is no format \"{}\"", name), "hlo, pb or mlir");
}

namespace {

// No text has control characters but those that separate.
bool is_binary(std::string_view bytes) {
  return std::any_of(bytes.begin(), bytes.end(), [](char c) {
    bool separates = (c >= '\t' && c <= '\r') || c == '\33';
    return c >= 0 && c < ' ' && !separates;
  });
}

}  // namespace

Format format_of(std::string_view content, std::string_view path) {
  size_t begin = content.find_first_not_of(" \t\r\n");
  std::string_view text = begin == std::string_view::npos ? "" : content.substr(begin);
  if (mlir::is_bytecode(content)) return Format::kStableHlo;
  if (is_binary(content.substr(0, 512))) return Format::kHloProto;
  if (text.starts_with("HloModule")) return Format::kHloText;
  for (std::string_view start : {"module ", "module@", "module{", "#", "func.func", "sdy.mesh"}) {
    if (text.starts_with(start)) return Format::kStableHlo;
  }
  if (path.ends_with(".pb")) return Format::kHloProto;
  return path.ends_with(".mlir") && !text.starts_with("ENTRY") ? Format::kStableHlo
                                                               : Format::kHloText;
}

std::unique_ptr<Module> read_program(Format format, std::string content, std::string file,
                                     std::vector<std::string>* warnings) {
  std::unique_ptr<Module> m;
  if (format == Format::kHloProto) {
    m = parse_hlo_proto(std::make_shared<Context>(), std::move(content), std::move(file), warnings);
  } else if (format == Format::kStableHlo) {
    m = parse_stablehlo(std::make_shared<Context>(), std::move(content), std::move(file));
    spell_annotations_in_hlo(m.get());
  } else {
    m = parse_hlo(std::make_shared<Context>(), std::move(content), std::move(file), warnings);
  }
  verify(*m);
  return m;
}

std::string write_program(Format format, const Module& m, const PrintOptions& options) {
  if (format == Format::kHloProto) {
    bool mesh_groups = options.replica_groups == PrintOptions::ReplicaGroups::kAsWritten;
    return print_hlo_proto(
        m,
        {.metadata = options.metadata, .shardings = options.shardings, .mesh_groups = mesh_groups});
  }
  return format == Format::kStableHlo ? print_stablehlo(m) : print_hlo(m, options);
}

}  // namespace gspmd
