#include "gspmd/api/program.h"

#include <fmt/format.h>

#include "gspmd/formats/mlir/reader.h"
#include "gspmd/formats/stablehlo/export.h"
#include "gspmd/formats/stablehlo/import.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/propagate/propagate.h"

namespace gspmd {
namespace {

[[noreturn]] void refuse_proto(std::string_view direction, const std::string& file) {
  Error e(fmt::format("HloModuleProto can not be {} yet", direction),
          "use HLO text: jax.jit(f).lower(...).compiler_ir('hlo').as_hlo_text()");
  throw e.at({file, 1, 1});
}

}  // namespace

Format format_named(std::string_view name) {
  if (name == "hlo") return Format::kHloText;
  if (name == "pb") return Format::kHloProto;
  if (name == "mlir") return Format::kStableHlo;
  throw Error(fmt::format("there is no format \"{}\"", name), "hlo, pb or mlir");
}

Format format_of(std::string_view content, std::string_view path) {
  size_t begin = content.find_first_not_of(" \t\r\n");
  std::string_view text = begin == std::string_view::npos ? "" : content.substr(begin);
  if (text.starts_with("HloModule")) return Format::kHloText;
  if (mlir::is_bytecode(content)) return Format::kStableHlo;
  for (std::string_view start : {"module ", "module@", "module{", "#", "func.func", "sdy.mesh"}) {
    if (text.starts_with(start)) return Format::kStableHlo;
  }
  bool binary = content.substr(0, 512).find_first_of(std::string_view("\0\1\2\3\4\5\6\7\b", 9)) !=
                std::string_view::npos;
  if (binary || path.ends_with(".pb")) return Format::kHloProto;
  return path.ends_with(".mlir") && !text.starts_with("ENTRY") ? Format::kStableHlo
                                                               : Format::kHloText;
}

std::unique_ptr<Module> read_program(Format format, std::string content, std::string file,
                                     std::vector<std::string>* warnings) {
  if (format == Format::kHloProto) refuse_proto("read", file);
  std::unique_ptr<Module> m;
  if (format == Format::kStableHlo) {
    m = parse_stablehlo(std::make_shared<Context>(), std::move(content), std::move(file));
    spell_annotations_in_hlo(m.get());
  } else {
    m = parse_hlo(std::make_shared<Context>(), std::move(content), std::move(file), warnings);
  }
  verify(*m);
  return m;
}

std::string write_program(Format format, const Module& m, const PrintOptions& options) {
  if (format == Format::kHloProto) refuse_proto("written", "");
  return format == Format::kStableHlo ? print_stablehlo(m) : print_hlo(m, options);
}

}  // namespace gspmd
