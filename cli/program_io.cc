#include "cli/program_io.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "gspmd/formats/hlo_text.h"
#include "gspmd/formats/stablehlo/export.h"
#include "gspmd/formats/stablehlo/import.h"
#include "gspmd/ops/op_def.h"
#include "gspmd/propagate/propagate.h"

namespace gspmd::cli {
namespace {

struct CloseFile {
  void operator()(std::FILE* f) const {
    if (f != nullptr && f != stdin && f != stdout) std::fclose(f);
  }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

Format format_named(const std::string& name) {
  return name == "pb" ? Format::kHloProto : name == "mlir" ? Format::kStableHlo : Format::kHloText;
}

Format output_format(const Options& o) {
  if (!o.output_format.empty()) return format_named(o.output_format);
  if (o.output.ends_with(".pb")) return Format::kHloProto;
  return o.output.ends_with(".mlir") ? Format::kStableHlo : Format::kHloText;
}

std::string_view name_of(Format f) {
  return f == Format::kHloProto    ? "HloModuleProto"
         : f == Format::kStableHlo ? "StableHLO"
                                   : "HLO text";
}

[[noreturn]] void refuse(Format f, const std::string& path, std::string_view direction) {
  Error e(fmt::format("{} can not be {} yet", name_of(f), direction),
          "use HLO text: jax.jit(f).lower(...).compiler_ir('hlo').as_hlo_text()");
  throw e.at({path, 1, 1});
}

}  // namespace

std::string read_all(const std::string& path) {
  File file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (file == nullptr) throw Error(fmt::format("{}: {}", path, std::strerror(errno)));
  std::string content;
  char block[1 << 16];
  while (size_t n = std::fread(block, 1, sizeof block, file.get())) content.append(block, n);
  if (std::ferror(file.get())) throw Error(fmt::format("{}: {}", path, std::strerror(errno)));
  return content;
}

void write_all(const std::string& path, std::string_view content) {
  File file(path == "-" ? stdout : std::fopen(path.c_str(), "wb"));
  if (file == nullptr) throw Error(fmt::format("{}: {}", path, std::strerror(errno)));
  size_t written = std::fwrite(content.data(), 1, content.size(), file.get());
  if (written != content.size() || std::fflush(file.get()) != 0) {
    throw Error(fmt::format("{}: {}", path, std::strerror(errno)));
  }
}

Format format_of(std::string_view content, const std::string& path) {
  size_t begin = content.find_first_not_of(" \t\r\n");
  std::string_view text = begin == std::string_view::npos ? "" : content.substr(begin);
  if (text.starts_with("HloModule")) return Format::kHloText;
  for (std::string_view start :
       {"module ", "module@", "module{", "#", "func.func", "sdy.mesh", "MLïR"}) {
    if (text.starts_with(start)) return Format::kStableHlo;
  }
  bool binary = content.substr(0, 512).find_first_of(std::string_view("\0\1\2\3\4\5\6\7\b", 9)) !=
                std::string_view::npos;
  if (binary || path.ends_with(".pb")) return Format::kHloProto;
  return path.ends_with(".mlir") && !text.starts_with("ENTRY") ? Format::kStableHlo
                                                               : Format::kHloText;
}

void warn(const Options& o, std::string_view rendered) {
  if (!o.quiet) fmt::print(stderr, "{}\n", rendered);
}

std::unique_ptr<Module> read_program(const Options& o, Phases* phases) {
  std::string content = read_all(o.input);
  std::string file = o.input == "-" ? "<stdin>" : o.input;
  phases->restart();
  Format format = o.format.empty() ? format_of(content, o.input) : format_named(o.format);
  if (format == Format::kHloProto) refuse(format, file, "read");
  std::vector<std::string> warnings;
  std::unique_ptr<Module> m;
  if (format == Format::kStableHlo) {
    m = parse_stablehlo(std::make_shared<Context>(), std::move(content), file);
    spell_annotations_in_hlo(m.get());
  } else {
    m = parse_hlo(std::make_shared<Context>(), std::move(content), file, &warnings);
  }
  verify(*m);
  for (const std::string& w : warnings) warn(o, w);
  phases->end("parse");
  return m;
}

void write_program(const Options& o, const Module& m, Phases* phases) {
  Format format = output_format(o);
  if (format == Format::kHloProto) refuse(format, o.output, "written");
  PrintOptions p;
  p.metadata = o.metadata;
  p.replica_groups = o.replica_groups == "iota" ? PrintOptions::ReplicaGroups::kIota
                                                : PrintOptions::ReplicaGroups::kAsWritten;
  std::string text = format == Format::kStableHlo ? print_stablehlo(m) : print_hlo(m, p);
  phases->end("print");
  write_all(o.output, text);
  phases->restart();
}

}  // namespace gspmd::cli
