#include "gspmd/gspmd.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "gspmd/api/partitioned.h"
#include "gspmd/base/version.h"

struct gspmd_options {
  gspmd::PartitionRequest request;
};
struct gspmd_program {
  gspmd::PartitionedProgram program;
};
struct gspmd_error {
  std::string message;
  int code;
};

namespace {

constexpr int kBadInput = 1, kOwnFault = 3;

// Runs `work` and makes an error object of what it throws.
template <typename Work>
gspmd_error* guarded(Work&& work) {
  try {
    work();
    return nullptr;
  } catch (const gspmd::Error& e) {
    return new gspmd_error{e.render(), kBadInput};
  } catch (const std::exception& e) {
    return new gspmd_error{fmt::format("internal error: {}", e.what()), kOwnFault};
  }
}

char* copied(std::string_view text) {
  char* buffer = static_cast<char*>(std::malloc(text.size() + 1));
  if (buffer == nullptr) throw std::bad_alloc();
  std::memcpy(buffer, text.data(), text.size());
  buffer[text.size()] = '\0';
  return buffer;
}

template <typename T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) throw gspmd::Error(fmt::format("{} is NULL", name));
  return *pointer;
}

bool flag(std::string_view name, std::string_view value) {
  if (value != "0" && value != "1")
    throw gspmd::Error(fmt::format("option {}: \"{}\"", name, value), "0 or 1");
  return value == "1";
}

int64_t number(std::string_view name, std::string_view value) {
  int64_t n = 0;
  for (char c : value) {
    if (c < '0' || c > '9' || n > (int64_t{1} << 40)) n = -1;
    if (n < 0) break;
    n = n * 10 + (c - '0');
  }
  if (n <= 0) throw gspmd::Error(fmt::format("option {}: \"{}\"", name, value), "a number above 0");
  return n;
}

void set_option(gspmd::PartitionRequest& r, std::string_view name, std::string_view value) {
  if (name == "format") {
    r.format = gspmd::format_named(value);
  } else if (name == "num_partitions") {
    r.options.num_partitions = number(name, value);
  } else if (name == "name") {
    r.name = value;
  } else if (name == "free_parameters") {
    r.free_parameters = {flag(name, value)};
  } else if (name == "free_results") {
    r.free_results = {flag(name, value)};
  } else {
    throw gspmd::Error(fmt::format("there is no option \"{}\"", name),
                       "format, num_partitions, name, free_parameters, free_results");
  }
}

std::string written(const gspmd::PartitionedProgram& p, std::string_view format) {
  if (format == "mlir-global") return p.stablehlo_with_global_interface();
  return p.text(gspmd::format_named(format),
                {.replica_groups = gspmd::PrintOptions::ReplicaGroups::kIota});
}

}  // namespace

const char* gspmd_version(void) {
  static const std::string version(gspmd::version());
  return version.c_str();
}

gspmd_options* gspmd_options_new(void) { return new (std::nothrow) gspmd_options; }
void gspmd_options_free(gspmd_options* options) { delete options; }

gspmd_error* gspmd_options_set(gspmd_options* options, const char* name, const char* value) {
  return guarded([&] {
    set_option(required(options, "options").request, &required(name, "name"),
               &required(value, "value"));
  });
}

gspmd_error* gspmd_partition(const void* data, size_t size, const gspmd_options* options,
                             gspmd_program** result) {
  return guarded([&] {
    required(result, "result") = nullptr;
    if (size > 0) required(static_cast<const char*>(data), "data");
    gspmd::PartitionRequest request;
    if (options != nullptr) request = options->request;
    request.program.assign(static_cast<const char*>(data), size);
    *result = new gspmd_program{gspmd::partition(std::move(request))};
  });
}

void gspmd_program_free(gspmd_program* program) { delete program; }

gspmd_error* gspmd_program_write(const gspmd_program* program, const char* format, char** buffer,
                                 size_t* size) {
  return guarded([&] {
    char*& to = required(buffer, "buffer");
    to = nullptr;
    std::string text = written(required(program, "program").program, &required(format, "format"));
    to = copied(text);
    if (size != nullptr) *size = text.size();
  });
}

gspmd_error* gspmd_program_stats(const gspmd_program* program, char** json) {
  return guarded(
      [&] { required(json, "json") = copied(required(program, "program").program.stats_json()); });
}

gspmd_error* gspmd_program_explain(const gspmd_program* program, char** json) {
  return guarded([&] {
    required(json, "json") = copied(required(program, "program").program.explanations_json());
  });
}

gspmd_error* gspmd_program_shardings(const gspmd_program* program, char** json) {
  return guarded([&] {
    const gspmd::PartitionedProgram& p = required(program, "program").program;
    nlohmann::ordered_json all;
    all["parameters"] = p.parameter_shardings();
    all["results"] = p.result_shardings();
    all["num_partitions"] = p.compiled.module->attrs.num_partitions;
    required(json, "json") = copied(all.dump());
  });
}

void gspmd_buffer_free(char* buffer) { std::free(buffer); }

const char* gspmd_error_message(const gspmd_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}
int gspmd_error_code(const gspmd_error* error) { return error == nullptr ? 0 : error->code; }
void gspmd_error_free(gspmd_error* error) { delete error; }
