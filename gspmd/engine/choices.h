#pragma once

#include <absl/container/flat_hash_map.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <vector>

#include "gspmd/engine/kernel.h"
#include "gspmd/engine/kernels/near_ties.h"

namespace gspmd {

// One execution of an operator that chooses (kernels/near_ties.h).
struct ChoicePlace {
  int64_t device = 0;
  const Instr* instr = nullptr;
  int64_t occurrence = 0;  // the device's n-th time there

  friend bool operator==(const ChoicePlace&, const ChoicePlace&) = default;
  friend bool operator<(const ChoicePlace& a, const ChoicePlace& b) {
    return std::tuple(a.device, a.instr->id, a.occurrence) <
           std::tuple(b.device, b.instr->id, b.occurrence);
  }
};

// Stands before the operators of a run that choose, and may change what goes into them. Called by
// several threads, in order for each device.
class ChoiceObserver {
 public:
  virtual ~ChoiceObserver() = default;
  void before(int64_t device, const Instr& i, absl::Span<Buffer> operands,
              const KernelContext& context);

 private:
  virtual void visit(const ChoicePlace& place, absl::Span<Buffer> operands,
                     const KernelContext& context) = 0;
  std::mutex mutex_;
  absl::flat_hash_map<std::pair<int64_t, const Instr*>, int64_t> occurrences_;
};

// A choice of the reference run that rounding can turn.
struct NearTie {
  ChoicePlace place;
  Nudge nudge;
};

// Runs the original program on one device with an observer: in its own types, or as the 64-bit
// reference (wide). Result leaves.
using ReferenceRun = std::function<std::vector<Buffer>(bool wide, ChoiceObserver* observer)>;

// All near ties of a program's reference run, those nearest first. nullopt where the operands of
// its choices are too many to be kept in `memory_limit` bytes.
std::optional<std::vector<NearTie>> find_near_ties(const ReferenceRun& run, int64_t memory_limit);

// How far results are from what is compared with them: 0 or more, Σ (distance / allowed)^2.
struct Deviation {
  double sum = 0;
  bool agrees = true;
};
// What the search asks about results of the reference: how far the partitioned program's are from
// them, and the largest change between two of them in parts of what is allowed.
class ChoiceJudge {
 public:
  virtual ~ChoiceJudge() = default;
  virtual Deviation deviation(const std::vector<Buffer>& reference) = 0;
  virtual double change(const std::vector<Buffer>& a, const std::vector<Buffer>& b) = 0;
};

// Looks for near ties that explain why the partitioned program's results differ from the
// reference: decided the other way, the reference must agree with *all* results, with no more
// allowed than otherwise. So a tie excuses only what follows from it.
struct Decided {
  std::vector<NearTie> ties;  // nudged
  std::vector<Buffer> reference;
  bool agrees = false;
  int64_t runs = 0;  // of the reference
};
Decided decide_otherwise(const ReferenceRun& run, ChoiceJudge* judge,
                         const std::vector<NearTie>& ties, std::vector<Buffer> reference);

}  // namespace gspmd
