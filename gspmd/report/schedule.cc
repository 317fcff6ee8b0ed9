#include "gspmd/report/schedule.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <queue>

#include "gspmd/ops/aliasing.h"

namespace gspmd {
namespace {

absl::Span<Instr* const> control_predecessors(const Instr& i) {
  return i.extras == nullptr ? absl::Span<Instr* const>() : i.extras->control_predecessors;
}

// As the root asks for them: depth first, then what has no users.
class PostOrder {
 public:
  explicit PostOrder(const Computation& c) : c_(c) {}

  std::vector<Instr*> run() {
    for (Instr* p : c_.params()) place(p);
    visit(c_.root());
    for (Instr* i : c_.instrs()) visit(i);
    return std::move(order_);
  }

 private:
  void place(Instr* i) {
    placed_.insert(i);
    order_.push_back(i);
  }

  void visit(Instr* from) {
    std::vector<Instr*> open = {from};
    while (!open.empty()) {
      Instr* i = open.back();
      size_t before = open.size();
      if (!placed_.contains(i)) {
        for (size_t k = i->operands.size(); k-- > 0;) ask_for(i->operands[k], &open);
        for (Instr* p : control_predecessors(*i)) ask_for(p, &open);
      }
      if (open.size() > before) continue;
      open.pop_back();
      if (!placed_.contains(i)) place(i);
    }
  }

  void ask_for(Instr* i, std::vector<Instr*>* open) {
    if (!placed_.contains(i)) open->push_back(i);
  }

  const Computation& c_;
  absl::flat_hash_set<const Instr*> placed_;
  std::vector<Instr*> order_;
};

// Of what is ready, the one that frees most beyond what it makes; the first among equals.
class Greedy {
 public:
  explicit Greedy(const Computation& c) : c_(c), users_(c) {}

  std::vector<Instr*> run() {
    for (size_t k = 0; k < c_.instrs().size(); ++k) {
      Instr* i = c_.instrs()[k];
      state_[i] = {
          .position = static_cast<int>(k),
          .waits_for = static_cast<int>(i->operands.size() + control_predecessors(*i).size()),
          .uses = static_cast<int>(users_.users(*i).size())};
      for (Instr* p : control_predecessors(*i)) successors_.push_back({p, i});
    }
    std::sort(successors_.begin(), successors_.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first->id, a.second->id) < std::pair(b.first->id, b.second->id);
    });
    for (Instr* i : c_.instrs()) {
      if (state_[i].waits_for == 0) offer(i);
    }
    while (!ready_.empty()) {
      Instr* i = ready_.top().instr;
      ready_.pop();
      if (!state_[i].placed) place(i);
    }
    return std::move(order_);
  }

 private:
  struct State {
    int position = 0;
    int waits_for = 0;  // operands and control predecessors that are not placed yet
    int uses = 0;       // that are not placed yet
    bool placed = false;
  };
  struct Ready {
    int64_t freed;
    int position;
    Instr* instr;
    bool operator<(const Ready& o) const {
      return freed != o.freed ? freed < o.freed : position > o.position;
    }
  };

  static int64_t bytes(const Instr& i) {
    if (i.opcode == Opcode::kParameter || !aliases_of(i).empty()) return 0;
    return i.shape.bytes();
  }

  // Bytes that are free after it and were not before.
  int64_t freed(const Instr& i) const {
    int64_t sum = -bytes(i);
    for (size_t k = 0; k < i.operands.size(); ++k) {
      const Instr* o = i.operands[k];
      auto end = i.operands.begin() + static_cast<std::ptrdiff_t>(k);
      if (std::find(i.operands.begin(), end, o) != end) continue;
      auto here = std::count(i.operands.begin(), i.operands.end(), o);
      if (state_.at(o).uses == here) sum += bytes(*o);
    }
    return sum;
  }

  void offer(Instr* i) { ready_.push({freed(*i), state_[i].position, i}); }

  void place(Instr* i) {
    state_[i].placed = true;
    order_.push_back(i);
    for (Instr* o : i->operands) {
      if (--state_[o].uses == 1) offer_last_user(*o);
    }
    for (Instr* u : users_.users(*i)) arrive(u);
    auto first = std::lower_bound(successors_.begin(), successors_.end(), i->id,
                                  [](const auto& s, uint32_t id) { return s.first->id < id; });
    for (; first != successors_.end() && first->first == i; ++first) arrive(first->second);
  }

  void arrive(Instr* i) {
    if (--state_[i].waits_for == 0) offer(i);
  }

  // It frees more than when it was offered. (Of a value with very many users nobody looks for it.)
  void offer_last_user(const Instr& value) {
    absl::Span<Instr* const> users = users_.users(value);
    if (users.size() > kManyUsers) return;
    for (Instr* u : users) {
      if (!state_[u].placed && state_[u].waits_for == 0) offer(u);
    }
  }

  static constexpr size_t kManyUsers = 64;
  const Computation& c_;
  UserMap users_;
  absl::flat_hash_map<const Instr*, State> state_;
  std::vector<std::pair<Instr*, Instr*>> successors_;  // by control dependence
  std::priority_queue<Ready> ready_;
  std::vector<Instr*> order_;
};

}  // namespace

std::vector<std::vector<Instr*>> memory_orders(const Computation& c) {
  return {c.instrs(), PostOrder(c).run(), Greedy(c).run()};
}

}  // namespace gspmd
