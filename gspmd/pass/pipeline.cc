#include "gspmd/pass/pipeline.h"

#include <chrono>

#include "gspmd/partition/choose_layouts.h"
#include "gspmd/partition/fixed_updates.h"
#include "gspmd/partition/localize.h"
#include "gspmd/partition/optimize_reshards.h"
#include "gspmd/pass/canonicalize.h"
#include "gspmd/pass/clean_up.h"
#include "gspmd/pass/explicit_batch.h"
#include "gspmd/pass/sdy_manual.h"
#include "gspmd/sharding/iota.h"

namespace gspmd {
namespace {

constexpr std::pair<Stage, std::string_view> kStages[] = {
    {Stage::kImport, "import"},
    {Stage::kPropagate, "propagate"},
    {Stage::kChooseLayouts, "choose-layouts"},
    {Stage::kReconcile, "reconcile"},
    {Stage::kOptimizeReshards, "optimize-reshards"},
    {Stage::kLocalize, "localize"},
    {Stage::kCleanUp, "clean-up"},
};

int64_t num_devices(const NamedMesh& mesh) {
  std::vector<int64_t> sizes;
  for (const auto& axis : mesh.axes) sizes.push_back(axis.second);
  return checked_product(sizes).value_or(1);
}

// Of the mesh that an annotation spells out; 1 where it has none.
int64_t num_devices(const ShardingSpelling& s) {
  int64_t n = std::max(num_devices(s.mesh), checked_product(s.tile_dims).value_or(1));
  for (const ShardingSpelling& e : s.elements) n = std::max(n, num_devices(e));
  return n;
}

class Timer {
 public:
  // Adds the milliseconds since the last call.
  void add_to(double* ms) {
    auto now = std::chrono::steady_clock::now();
    *ms += std::chrono::duration<double, std::milli>(now - last_).count();
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

class Pipeline {
 public:
  Pipeline(std::unique_ptr<Module> module, const CompileOptions& options)
      : module_(std::move(module)), o_(options) {}

  Compiled run() {
    Compiled out;
    out.instructions_before = module_->num_instrs();
    Timer timer;
    lower_sdy_manual(module_.get());  // while calls still show which computations are manual
    drop_annotations_of_reducers(module_.get());
    inline_calls(module_.get());           // each call site is partitioned for its own shardings
    separate_root(module_.get());          // results are laid out apart from a loop that makes them
    make_batches_explicit(module_.get());  // before completion, which follows them
    if (stop(Stage::kImport, *module_, nullptr)) return finish(&out);

    Context& context = module_->context();
    MeshRefinement refinement(&context.shardings(), num_partitions_of(*module_, o_.num_partitions),
                              named_meshes_of(*module_));
    RuleCache rules;
    note_annotations(*module_, rules, &refinement);
    Propagation completed = propagate(*module_, refinement, rules, o_.propagate);
    timer.add_to(&out.ms.propagate);
    if (o_.completed) o_.completed(*module_, completed.shardings);
    if (stop(Stage::kPropagate, *module_, &completed.shardings)) return finish(&out);

    ReshardPlanner planner(&context.shardings(), o_.partition.machine.links);
    PartitionState state{*module_, completed.shardings,  refinement.mesh(), rules,
                         planner,  o_.partition.decider, o_.partition,      &out.warnings};
    remember_interface(completed.shardings, &out);
    if (o_.partition.handlers) make_fixed_updates_selects(state);
    lay_out(state);  // completion looks at no price
    if (stop(Stage::kChooseLayouts, *module_, &completed.shardings)) return finish(&out);
    reconcile(state);
    if (state.decider != nullptr) state.decider->finish();
    if (stop(Stage::kReconcile, *module_, &completed.shardings)) return finish(&out);
    optimize_reshards(
        state);  // before localising: reshards are still whole instructions with global shapes
    if (stop(Stage::kOptimizeReshards, *module_, &completed.shardings)) return finish(&out);

    source_ = std::move(module_);
    module_ = localize(state);
    timer.add_to(&out.ms.partition);
    if (stop(Stage::kLocalize, *module_, nullptr)) return finish(&out);
    clean_up(module_.get());  // what localising emitted twice or for nothing
    timer.add_to(&out.ms.optimize);
    stop(Stage::kCleanUp, *module_, nullptr);
    return finish(&out);
  }

 private:
  void lay_out(PartitionState& state) {
    Decider* decider = state.decider;
    CompletedLayouts completed;
    for (const auto& c : module_->computations()) {
      for (const Instr* i : c->instrs()) {
        if (decider != nullptr && i->shape.is_array() && !state.shardings.of(*i).empty())
          completed.set(*i, state.shardings.leaf(*i));
      }
    }
    bool done = decider != nullptr && decider->lay_out(state);
    if (!done && o_.partition.choose_layouts) choose_layouts(state);
    if (decider != nullptr) decider->after_layouts(state, completed);
  }

  bool stop(Stage stage, Module& m, const ShardingTable* shardings) {
    bool last = o_.stop_after == stage;
    if (shardings != nullptr && (last || o_.dump)) write_annotations(&m, *shardings);
    if (o_.dump) o_.dump(stage, m);
    return last;
  }

  Compiled finish(Compiled* out) {
    out->module = std::move(module_);
    return std::move(*out);
  }

  void remember_interface(const ShardingTable& shardings, Compiled* out) {
    for (const Instr* p : module_->entry()->params()) {
      for (Sharding s : shardings.of(*p)) out->parameter_shardings.push_back(s);
    }
    for (Sharding s : shardings.of(*module_->entry()->root())) out->result_shardings.push_back(s);
  }

  std::unique_ptr<Module> module_, source_;
  const CompileOptions& o_;
};

}  // namespace

std::string_view to_string(Stage s) {
  for (const auto& [stage, name] : kStages) {
    if (stage == s) return name;
  }
  return "unknown";
}

std::optional<Stage> parse_stage(std::string_view name) {
  for (const auto& [stage, spelled] : kStages) {
    if (spelled == name) return stage;
  }
  return std::nullopt;
}

int64_t num_partitions_of(const Module& module, int64_t option) {
  if (option > 0) return option;
  if (module.attrs.num_partitions > 1) return module.attrs.num_partitions;
  int64_t n = 1;
  for (const auto& [name, mesh] : named_meshes_of(module)) n = std::max(n, num_devices(mesh));
  for (const auto& c : module.computations()) {
    for (const Instr* i : c->instrs()) {
      if (i->annotation != nullptr) n = std::max(n, num_devices(*i->annotation));
    }
  }
  return n;
}

Compiled partition(std::unique_ptr<Module> module, const CompileOptions& options) {
  return Pipeline(std::move(module), options).run();
}

}  // namespace gspmd
