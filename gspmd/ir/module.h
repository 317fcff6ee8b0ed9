#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "gspmd/base/error.h"
#include "gspmd/ir/context.h"
#include "gspmd/ir/instr.h"

namespace gspmd {

class Module;

// A function: instructions in an order where operands precede their users.
class Computation {
 public:
  Computation(Module* module, std::string_view name) : module_(module), name_(name) {}

  std::string_view name() const { return name_; }
  Module& module() const { return *module_; }
  const std::vector<Instr*>& instrs() const { return instrs_; }
  const std::vector<Instr*>& params() const { return params_; }  // by parameter number
  Instr* root() const { return root_; }
  void set_root(Instr* root) { root_ = root; }
  std::string_view execution_thread;

  // Used by passes that reorder or drop instructions: `order` must keep operands before users and
  // hold the parameters.
  void set_instrs(std::vector<Instr*> order);

 private:
  friend class Module;
  Module* module_;
  std::string_view name_;
  std::vector<Instr*> instrs_, params_;
  Instr* root_ = nullptr;
};

struct Alias {  // input_output_alias: output index <- (parameter, its index)
  std::vector<int64_t> output_index;
  int64_t parameter = 0;
  std::vector<int64_t> parameter_index;
  bool must = false;
  friend bool operator==(const Alias&, const Alias&) = default;
};
struct Donor {
  int64_t parameter = 0;
  std::vector<int64_t> index;
  friend bool operator==(const Donor&, const Donor&) = default;
};

// Tables of `FileNames`, `FunctionNames`, `FileLocations`, `StackFrames`; ids count from 1.
struct FileLocation {
  int32_t file = 0, function = 0, line = 0, end_line = 0, column = 0, end_column = 0;
  friend bool operator==(const FileLocation&, const FileLocation&) = default;
};
struct StackFrame {
  int32_t location = 0;
  int32_t parent = 0;  // as printed: parent's number + 1; 1 = none; 0 = not given
  friend bool operator==(const StackFrame&, const StackFrame&) = default;
};
struct StackTables {
  std::vector<std::string_view> files, functions;
  std::vector<FileLocation> locations;
  std::vector<StackFrame> frames;
  bool empty() const {
    return files.empty() && functions.empty() && locations.empty() && frames.empty();
  }
};

// The module's header, as read.
struct ModuleAttrs {
  bool is_scheduled = false;
  std::vector<Alias> aliases;
  std::vector<Donor> donors;
  std::vector<Shape>
      entry_parameter_layouts;  // entry_computation_layout; empty optional below if not written
  Shape entry_result_layout;    // null if not written
  std::vector<bool> propagate_to_parameters,
      propagate_to_output;  // allow_spmd_sharding_propagation_to_*
  int64_t replica_count = 1;
  int64_t num_partitions = 1;
  std::string frontend_attributes;  // raw `{...}`
  std::string rest;                 // other header attributes, raw `name=value` joined by ", "
};

// The text a module was read from, for diagnostics.
struct SourceText {
  SourceText(std::string file, std::string text) : file(std::move(file)), text(std::move(text)) {}
  // Number (from 0) and start of the line that holds a byte.
  std::pair<int64_t, size_t> line_at(size_t offset) const;

  const std::string file;
  const std::string text;

 private:
  mutable std::once_flag indexed_;
  mutable std::vector<size_t> line_starts_;  // found when first asked for
};

class Module {
 public:
  Module(std::shared_ptr<Context> context, std::string_view name);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  Context& context() const { return *context_; }
  const std::shared_ptr<Context>& shared_context() const { return context_; }
  std::string_view name() const { return name_; }
  void set_name(std::string_view name) { name_ = context_->name(name); }
  ModuleAttrs attrs;
  StackTables stack;
  std::shared_ptr<const SourceText> source;

  const std::vector<std::unique_ptr<Computation>>& computations() const {
    return computations_;
  }  // callees first
  Computation* entry() const { return entry_; }
  void set_entry(Computation* c) { entry_ = c; }
  Computation* add_computation(std::string_view name);  // made unique if taken
  // Keeps only these, in this order.
  void set_computations(absl::Span<Computation* const> order);
  Computation* find(std::string_view name) const;

  // Appends an instruction. `name` is made unique within `parent` by a suffix if `unique_name`.
  Instr* add(Computation* parent, Opcode opcode, Shape shape, absl::Span<Instr* const> operands,
             Attrs attributes = {}, std::string_view name = {});
  absl::Span<Instr*> instr_array(absl::Span<Instr* const> from);
  absl::Span<Computation*> computation_array(absl::Span<Computation* const> from);

  uint32_t num_ids() const { return next_id_; }  // all ids are smaller
  int64_t num_instrs() const;

  // File, line and column of an instruction, and the line's text.
  Place place_of(const Instr& i, std::string* line = nullptr) const;
  // "model.py:12" of the user's program (its own metadata, or the innermost stack frame); empty if
  // unknown.
  std::string model_place(const Metadata* m) const;

 private:
  std::shared_ptr<Context> context_;
  std::string_view name_;
  Arena arena_;
  std::vector<std::unique_ptr<Computation>> computations_;
  absl::flat_hash_map<std::string_view, Computation*> by_name_;
  Computation* entry_ = nullptr;
  uint32_t next_id_ = 0;
};

// A value for every instruction of a module, by its id; T() where none was set. Grows with the
// module.
template <typename T>
class InstrTable {
 public:
  T get(const Instr& i) const { return i.id < by_id_.size() ? by_id_[i.id] : T(); }
  void set(const Instr& i, T value) {
    if (i.id >= by_id_.size())
      by_id_.resize(std::max<size_t>(i.id + 1, i.parent->module().num_ids()));
    by_id_[i.id] = value;
  }

 private:
  std::vector<T> by_id_;
};

// What stands for instructions that a pass replaces.
class Replacements {
 public:
  void set(const Instr& from, Instr* to) { table_.set(from, to); }
  Instr* current(Instr* i) const {
    Instr* to = table_.get(*i);
    return to == nullptr ? i : to;
  }

 private:
  InstrTable<Instr*> table_;
};

// Users of every instruction of a computation, by one walk: a snapshot, not kept up to date.
class UserMap {
 public:
  explicit UserMap(const Computation& c);
  absl::Span<Instr* const> users(const Instr& i) const;  // in order; one entry per use

 private:
  uint32_t base_ = 0;
  std::vector<uint32_t> start_;
  std::vector<Instr*> users_;
};

// An error about `i`, with its place and the model's.
Error error_at(const Module& m, const Instr& i, std::string message, std::string hint = "",
               std::string code = "");

}  // namespace gspmd
