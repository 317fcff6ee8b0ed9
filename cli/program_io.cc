#include "cli/program_io.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace gspmd::cli {
namespace {

struct CloseFile {
  void operator()(std::FILE* f) const {
    if (f != nullptr && f != stdin && f != stdout) std::fclose(f);
  }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

Format output_format(const Options& o) {
  if (!o.output_format.empty()) return format_named(o.output_format);
  if (o.output.ends_with(".pb")) return Format::kHloProto;
  return o.output.ends_with(".mlir") ? Format::kStableHlo : Format::kHloText;
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

void warn(const Options& o, std::string_view rendered) {
  if (!o.quiet) fmt::print(stderr, "{}\n", rendered);
}

std::unique_ptr<Module> read_program(const Options& o, Phases* phases) {
  std::string content = read_all(o.input);
  std::string file = o.input == "-" ? "<stdin>" : o.input;
  phases->restart();
  Format format = o.format.empty() ? format_of(content, o.input) : format_named(o.format);
  std::vector<std::string> warnings;
  auto m = gspmd::read_program(format, std::move(content), std::move(file), &warnings);
  for (const std::string& w : warnings) warn(o, w);
  phases->end("parse");
  return m;
}

void write_program(const Options& o, const Module& m, Phases* phases) {
  Format format = output_format(o);
  PrintOptions p;
  p.metadata = o.metadata;
  p.replica_groups = o.replica_groups == "iota" ? PrintOptions::ReplicaGroups::kIota
                                                : PrintOptions::ReplicaGroups::kAsWritten;
  std::string text = gspmd::write_program(format, m, p);
  phases->end("print");
  write_all(o.output, text);
  phases->restart();
}

}  // namespace gspmd::cli
