#include "gspmd/partition/choose_layouts.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>

#include "gspmd/partition/layout_trial.h"
#include "gspmd/partition/manual.h"

namespace gspmd {
namespace {

// Where a search starts, and what could be won there at most.
struct Seed {
  Instr* op;
  int64_t bound;
};

class Search {
 public:
  Search(PartitionState& s, Chooser& chooser, Computation& c)
      : s_(s), c_(c), neighbourhood_(s, chooser, c) {}

  void run() {
    for (int round = 1; round <= kRounds; ++round) {
      memory_.clear();
      bool changed = false;
      for (const Seed& seed : seeds(round)) {
        Memory& before = memory_[signature(*seed.op)];
        if (before.failures >= kFailures || bound_of(seed.op) <= 0) continue;
        bool better = improve(seed.op, round, &before);
        if (!better) ++before.failures;
        changed |= better;
      }
      if (!changed) return;
    }
  }

 private:
  // Operators that look alike mostly end alike: layers of a model.
  struct Memory {
    int failures = 0;
    int64_t gain = 0;
    std::vector<Neighbourhood::Changed> changes;  // that gained it
  };
  using Signature = std::pair<const Rule*, std::vector<Sharding>>;

  // In later rounds, those near which something has changed.
  std::vector<Seed> seeds(int round) {
    std::vector<Seed> found;
    int64_t total = 0;
    for (Instr* i : c_.instrs()) {
      if (round > 1 && changed_in_.get(*i) < round - 1) continue;
      int64_t bound = bound_of(i);
      if (bound <= 0) continue;
      found.push_back({i, bound});
      total = std::min(total + bound, int64_t{1} << 60);
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const Seed& a, const Seed& b) { return a.bound > b.bound; });
    // The small ones together are not worth the time.
    int64_t n = static_cast<int64_t>(found.size());
    while (!found.empty() && found.back().bound < total / (kSmall * n)) found.pop_back();
    return found;
  }

  // What an operator pays beyond its share of the computation.
  int64_t bound_of(Instr* i) {
    if (!neighbourhood_.is_operator(*i)) return 0;
    const Choice& now = neighbourhood_.before(*i);
    bool heavy = def(*i).flops_per_point >= 2 && now.idle > 1;
    return now.total - now.compute + (heavy ? now.compute - now.compute / now.idle : 0);
  }

  bool improve(Instr* op, int round, Memory* memory) {
    Best best;
    if (memory->gain > 0) attempt_again(op, *memory, &best);
    if (best.gain < memory->gain / 4 * 3 || best.gain == 0) {
      std::vector<Sharding> starts = neighbourhood_.other_layouts(*op);
      if (starts.size() > kStarts) starts.resize(kStarts);
      for (Sharding start : starts) attempt(op, start, &best);
      attempt(op, Sharding(), &best);
    }
    if (best.gain == 0) return false;
    neighbourhood_.commit(best.changes);
    for (const Neighbourhood::Changed& c : best.changes) note_near(c.value, round);
    memory->gain = best.gain;
    memory->changes = std::move(best.changes);
    return true;
  }

  // Operators whose choice may be another now, and those whose neighbours' may be.
  void note_near(const Instr* value, int round) {
    const auto note = [&](const Instr& i) {
      changed_in_.set(i, round);
      for (const Instr* o : i.operands) changed_in_.set(*o, round);
    };
    note(*value);
    for (const Instr* u : neighbourhood_.users(*value)) note(*u);
  }

  struct Best {
    int64_t gain = 0;
    std::vector<Neighbourhood::Changed> changes;

    void offer(int64_t g, const LayoutTrial& trial) {
      if (g <= gain) return;
      gain = g;
      changes.assign(trial.changes().begin(), trial.changes().end());
    }
  };

  void attempt_again(Instr* op, const Memory& memory, Best* best) {
    LayoutTrial trial(neighbourhood_);
    if (trial.replay(op, memory.changes)) best->offer(trial.gain(), trial);
  }

  // Lays the result of `op` out as `start`, or else its neighbours as it wishes. Then the neighbour
  // that suffers most follows, and so on until none does; what was best on the way is kept.
  void attempt(Instr* op, Sharding start, Best* best) {
    LayoutTrial trial(neighbourhood_);
    if (start) {
      if (!neighbourhood_.is_free(*op)) return;
      trial.set(op, start);
    } else if (!trial.extend(op)) {
      return;
    }
    int since = 0;
    int64_t most = INT64_MIN;
    do {
      int64_t gain = trial.gain();
      since = gain > most ? 0 : since + 1;
      most = std::max(most, gain);
      best->offer(gain, trial);
    } while (since < kPatience && trial.changes().size() < kMostChanges &&
             trial.let_worst_follow());
  }

  Signature signature(const Instr& i) {
    std::vector<Sharding> layouts;
    for (const Instr* o : i.operands) {
      for (Sharding s : s_.shardings.of(*o)) layouts.push_back(s);
    }
    for (Sharding s : s_.shardings.of(i)) layouts.push_back(s);
    return {&s_.rules.get(i), std::move(layouts)};
  }

  static constexpr int kRounds = 3;
  static constexpr int kPatience = 10, kFailures = 2;
  static constexpr size_t kStarts = 4;
  static constexpr size_t kMostChanges = 100;  // in one trial; the next one goes on from there
  static constexpr int64_t kSmall = 8;
  PartitionState& s_;
  Computation& c_;
  Neighbourhood neighbourhood_;
  absl::flat_hash_map<Signature, Memory> memory_;
  InstrTable<int> changed_in_;  // the last round that changed something near the operator
};

}  // namespace

void choose_layouts(PartitionState& state) {
  Chooser chooser(state);
  for (Computation* c : partitioned_computations(state.module)) Search(state, chooser, *c).run();
}

}  // namespace gspmd
