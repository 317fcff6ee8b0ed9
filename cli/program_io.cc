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

namespace {

// Written piece by piece; what can not be written is an error.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path)
      : path_(path), file_(path == "-" ? stdout : std::fopen(path.c_str(), "wb")) {
    check(file_ != nullptr);
  }
  void write(std::string_view piece) {
    check(std::fwrite(piece.data(), 1, piece.size(), file_.get()) == piece.size());
  }
  void finish() { check(std::fflush(file_.get()) == 0); }

 private:
  void check(bool done) const {
    if (!done) throw Error(fmt::format("{}: {}", path_, std::strerror(errno)));
  }
  const std::string path_;
  File file_;
};

}  // namespace

void write_all(const std::string& path, std::string_view content) {
  OutputFile file(path);
  file.write(content);
  file.finish();
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
  if (format == Format::kHloText) {
    OutputFile file(o.output);
    print_hlo(m, p, [&](std::string_view piece) { file.write(piece); });
    file.finish();
  } else {
    write_all(o.output, gspmd::write_program(format, m, p));
  }
  phases->end("print");
}

}  // namespace gspmd::cli
