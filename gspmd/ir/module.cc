#include "gspmd/ir/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "gspmd/base/check.h"

namespace gspmd {

void Computation::set_instrs(std::vector<Instr*> order) {
  instrs_ = std::move(order);
  GSPMD_CHECK(root_ != nullptr, "a computation without root");
}

Module::Module(std::shared_ptr<Context> context, std::string_view name)
    : context_(std::move(context)), name_(context_->name(name)) {}
Module::~Module() = default;

Computation* Module::find(std::string_view name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

Computation* Module::add_computation(std::string_view name) {
  std::string unique(name);
  for (int i = 1; find(unique) != nullptr; ++i) unique = fmt::format("{}.{}", name, i);
  computations_.push_back(std::make_unique<Computation>(this, context_->name(unique)));
  Computation* c = computations_.back().get();
  by_name_.emplace(c->name(), c);
  return c;
}

void Module::set_computations(absl::Span<Computation* const> order) {
  std::unordered_map<Computation*, std::unique_ptr<Computation>> owned;
  for (auto& c : computations_) {
    Computation* key = c.get();
    owned.emplace(key, std::move(c));
  }
  computations_.clear();
  by_name_.clear();
  for (Computation* c : order) {
    computations_.push_back(std::move(owned.at(c)));
    by_name_.emplace(c->name(), c);
  }
}

Instr* Module::add(Computation* parent, Opcode opcode, Shape shape,
                   absl::Span<Instr* const> operands, Attrs attributes, std::string_view name) {
  Instr* i = arena_.make<Instr>();
  i->opcode = opcode;
  i->id = next_id_++;
  i->shape = shape;
  i->name = name;
  i->operands = instr_array(operands);
  i->attributes = attributes;
  i->parent = parent;
  parent->instrs_.push_back(i);
  if (opcode == Opcode::kParameter) {
    size_t number = static_cast<size_t>(attributes.get<ParameterAttrs>().number);
    if (parent->params_.size() <= number) parent->params_.resize(number + 1);
    parent->params_[number] = i;
  }
  return i;
}

absl::Span<Instr*> Module::instr_array(absl::Span<Instr* const> from) {
  absl::Span<Instr*> to = arena_.array<Instr*>(from.size());
  std::copy(from.begin(), from.end(), to.begin());
  return to;
}

absl::Span<Computation*> Module::computation_array(absl::Span<Computation* const> from) {
  absl::Span<Computation*> to = arena_.array<Computation*>(from.size());
  std::copy(from.begin(), from.end(), to.begin());
  return to;
}

int64_t Module::num_instrs() const {
  int64_t n = 0;
  for (const auto& c : computations_) n += static_cast<int64_t>(c->instrs().size());
  return n;
}

std::pair<int64_t, size_t> SourceText::line_at(size_t offset) const {
  std::call_once(indexed_, [this] {
    line_starts_.push_back(0);
    for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
      line_starts_.push_back(at + 1);
  });
  auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  return {next - line_starts_.begin() - 1, *(next - 1)};
}

Place Module::place_of(const Instr& i, std::string* line) const {
  if (source == nullptr || i.place == 0) return {};
  const std::string& text = source->text;
  size_t at = std::min(static_cast<size_t>(i.place - 1), text.size());
  auto [number, start] = source->line_at(at);
  if (line != nullptr) *line = text.substr(start, text.find('\n', at) - start);
  return {source->file, number + 1, static_cast<int64_t>(at - start) + 1};
}

std::string Module::model_place(const Metadata* m) const {
  if (m == nullptr) return {};
  if (!m->source_file.empty()) return fmt::format("{}:{}", m->source_file, m->source_line);
  size_t frame = static_cast<size_t>(m->stack_frame_id);
  if (frame == 0 || frame > stack.frames.size()) return {};
  size_t location = static_cast<size_t>(stack.frames[frame - 1].location);
  if (location == 0 || location > stack.locations.size()) return {};
  const FileLocation& l = stack.locations[location - 1];
  if (l.file <= 0 || static_cast<size_t>(l.file) > stack.files.size()) return {};
  return fmt::format("{}:{}", stack.files[static_cast<size_t>(l.file) - 1], l.line);
}

UserMap::UserMap(const Computation& c) {
  uint32_t low = UINT32_MAX, high = 0;
  for (const Instr* i : c.instrs()) {
    low = std::min(low, i->id);
    high = std::max(high, i->id + 1);
  }
  if (high == 0) return;
  base_ = low;
  start_.assign(high - low + 1, 0);
  for (const Instr* i : c.instrs()) {
    for (const Instr* o : i->operands) ++start_[o->id - base_ + 1];
  }
  for (size_t k = 1; k < start_.size(); ++k) start_[k] += start_[k - 1];
  users_.resize(start_.back());
  std::vector<uint32_t> next(start_.begin(), start_.end() - 1);
  for (Instr* i : c.instrs()) {
    for (const Instr* o : i->operands) users_[next[o->id - base_]++] = i;
  }
}

absl::Span<Instr* const> UserMap::users(const Instr& i) const {
  uint32_t k = i.id - base_;
  if (k + 1 >= start_.size()) return {};
  return absl::MakeConstSpan(users_).subspan(start_[k], start_[k + 1] - start_[k]);
}

std::string describe(const Instr& i) {
  std::string name(i.name);
  if (name.empty()) name = fmt::format("{}.{}", name_of(i.opcode), i.id);
  std::string out = fmt::format("{} = {} {}(", name, to_string(i.shape), name_of(i.opcode));
  for (int k = 0; k < i.num_operands(); ++k) {
    if (k > 0) out += ", ";
    if (k == 4 && i.num_operands() > 5) {
      out += "...";
      break;
    }
    out += i.operand(k)->name;
  }
  return out + ")";
}

std::string_view to_string(Reason r) {
  switch (r) {
    case Reason::kRewrite:
      return "rewrite";
    case Reason::kReshardOperand:
      return "reshard-operand";
    case Reason::kReshardResult:
      return "reshard-result";
    case Reason::kPartialReduction:
      return "partial-reduction";
    case Reason::kHalo:
      return "halo";
    case Reason::kMask:
      return "mask";
    case Reason::kOffset:
      return "offset";
    case Reason::kIndexRebase:
      return "index-rebase";
    case Reason::kFallback:
      return "fallback";
    case Reason::kBroadcastFromOne:
      return "broadcast-from-one";
    case Reason::kManualBoundary:
      return "manual-boundary";
    case Reason::kEntryInterface:
      return "entry-interface";
    case Reason::kControlFlow:
      return "control-flow";
  }
  return "unknown";
}

Error error_at(const Module& m, const Instr& i, std::string message, std::string hint,
               std::string code) {
  std::string line;
  Place place = m.place_of(i, &line);
  Error e(fmt::format("{}: {}", describe(i), message), std::move(hint), std::move(code));
  if (place.line > 0) e.at(place, line);
  std::string model = m.model_place(i.metadata);
  if (!model.empty()) e.in_model(model);
  return e;
}

}  // namespace gspmd
