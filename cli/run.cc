#include <fmt/format.h>

#include <filesystem>

#include "cli/annotate.h"
#include "cli/compile.h"
#include "cli/execution.h"
#include "cli/program_io.h"
#include "gspmd/engine/check.h"
#include "gspmd/engine/inputs.h"
#include "gspmd/engine/npy.h"
#include "gspmd/engine/wide.h"
#include "gspmd/pass/boundaries.h"

namespace gspmd::cli {
namespace {

// "f32[8,4]  min -1  mean 0.02  max 1"; short arrays whole.
std::string summary(const Buffer& b) {
  std::string out = fmt::format("{}[{}]", name_of(b.type()), fmt::join(b.dims(), ","));
  if (b.size() == 0) return out;
  Buffer w = is_complex(b.type()) ? widen(b) : narrow(b, ElementType::kF64);
  int64_t n = w.size() * (is_complex(b.type()) ? 2 : 1);
  const double* p = reinterpret_cast<const double*>(w.raw());
  if (n <= 8) return out + fmt::format("  {}", fmt::join(p, p + n, " "));
  double sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += p[k];
  return out + fmt::format("  min {:g}  mean {:g}  max {:g}", *std::min_element(p, p + n),
                           sum / static_cast<double>(n), *std::max_element(p, p + n));
}

void show(const std::vector<std::vector<Buffer>>& devices, const std::string& folder) {
  for (size_t d = 0; d < devices.size(); ++d) {
    for (size_t k = 0; k < devices[d].size(); ++k) {
      if (folder.empty()) {
        fmt::print("device {} result {}: {}\n", d, k, summary(devices[d][k]));
      } else {
        write_npy(fmt::format("{}/o{}_d{}.npy", folder, k, d), devices[d][k]);
      }
    }
  }
}

// A program that is per-device already (it has no annotations, or collectives) runs as it is; all
// else is partitioned first.
bool is_partitioned(const Module& m) {
  for (const auto& c : m.computations()) {
    for (const Instr* i : c->instrs()) {
      if (i->opcode == Opcode::kPartitionId || def(*i).traits.collective) return true;
      if (i->annotation != nullptr) return false;
    }
  }
  return m.attrs.num_partitions == 1;
}

}  // namespace

std::vector<Buffer> read_inputs(const Options& o, const Module& m) {
  if (o.inputs.empty()) return {};
  std::vector<Buffer> out;
  std::vector<Shape> leaves;
  for (const Instr* p : m.entry()->params())
    for_each_leaf(p->shape, [&](Shape s, int) { leaves.push_back(s); });
  if (o.inputs.size() != leaves.size()) {
    throw Error(fmt::format("--inputs: {} files for {} parameters", o.inputs.size(), leaves.size()),
                "one for each, in order");
  }
  for (size_t k = 0; k < leaves.size(); ++k)
    out.push_back(read_npy(o.inputs[k], leaves[k].type(), leaves[k].dims()));
  return out;
}

Command add_run(CLI::App* app) {
  auto o = std::make_shared<Options>();
  auto folder = std::make_shared<std::string>();
  CLI::App* command =
      app->add_subcommand("run", "Run on N virtual devices and print or save the results");
  add_input(command, o.get());
  add_partitioning(command, o.get());
  add_execution(command, o.get());
  command->add_option(
      "--outputs", *folder,
      "folder for the results, o<result>_d<device>.npy; otherwise a line each is printed");
  command->footer(
      "A program with annotations is partitioned first; a per-device program runs as it is.\n"
      "Example:\n  gspmd run model.hlo --num-partitions 8 --seed 3 --outputs results/");
  return {command, [o, folder] {
            Phases phases;
            auto module = read_program(*o, &phases);
            annotate(*o, module.get());
            RunOptions one_device;
            refuse_what_does_not_fit(*module, one_device);
            std::vector<Buffer> inputs = read_inputs(*o, *module);
            if (inputs.empty()) inputs = make_inputs(*module, o->seed, o->scale);
            bool ready = is_partitioned(*module);
            Compiled c;
            if (ready) {
              c.module = std::move(module);
            } else {
              c = partition(std::move(module), compile_options(*o));
            }
            RunOptions run_options;
            run_options.num_devices = std::max<int64_t>(
                {1, c.module->attrs.num_partitions, c.module->attrs.replica_count});
            run_options.threads = o->threads;
            if (o->max_trips > 0) run_options.max_trips = o->max_trips;
            refuse_what_does_not_fit(*c.module, run_options);
            std::vector<std::vector<Buffer>> leaves(static_cast<size_t>(run_options.num_devices));
            for (size_t k = 0; k < inputs.size(); ++k) {
              std::vector<Buffer> blocks = ready ? std::vector<Buffer>(leaves.size(), inputs[k])
                                                 : blocks_of(inputs[k], c.parameter_shardings[k]);
              for (size_t d = 0; d < leaves.size(); ++d) leaves[d].push_back(blocks[d]);
            }
            std::vector<std::vector<Value>> arguments;
            for (auto& l : leaves) arguments.push_back(arguments_of(*c.module, l));
            Program program(*c.module);
            std::vector<Value> results = run(program, std::move(arguments), run_options);
            phases.end("run");
            std::vector<std::vector<Buffer>> out(results.size());
            for (size_t d = 0; d < results.size(); ++d) flatten(results[d], &out[d]);
            if (!folder->empty()) std::filesystem::create_directories(*folder);
            show(out, *folder);
            if (o->time) phases.report();
            return 0;
          }};
}

}  // namespace gspmd::cli
