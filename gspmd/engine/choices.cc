#include "gspmd/engine/choices.h"

#include <algorithm>
#include <chrono>

#include "gspmd/base/error.h"

namespace gspmd {
namespace {

using Operands = std::vector<Buffer>;

// Keeps what goes into every choice of the run in the program's own types.
class Tape : public ChoiceObserver {
 public:
  explicit Tape(int64_t limit) : limit_(limit) {}
  bool full() const { return bytes_ > limit_; }
  const Operands* find(const ChoicePlace& place) const {
    auto it = kept_.find(place);
    return it == kept_.end() ? nullptr : &it->second;
  }

 private:
  void visit(const ChoicePlace& place, absl::Span<Buffer> operands, const KernelContext&) override {
    for (const Buffer& b : operands) bytes_ += b.bytes();
    if (!full()) kept_.emplace(place, Operands(operands.begin(), operands.end()));
  }

  int64_t limit_, bytes_ = 0;
  std::map<ChoicePlace, Operands> kept_;
};

// Compares the reference run with the tape.
class Finder : public ChoiceObserver {
 public:
  explicit Finder(const Tape& tape) : tape_(tape) {}
  std::vector<NearTie>& ties() { return ties_; }

 private:
  void visit(const ChoicePlace& place, absl::Span<Buffer> operands,
             const KernelContext& context) override {
    const Operands* own = tape_.find(place);
    if (own == nullptr) return;  // control flow went otherwise
    for (const Nudge& n : near_ties(*place.instr, *own, operands, context)) {
      ties_.push_back({place, n});
    }
  }

  const Tape& tape_;
  std::vector<NearTie> ties_;
};

// Nudges some operands of the reference run.
class Nudger : public ChoiceObserver {
 public:
  explicit Nudger(absl::Span<const NearTie> ties) {
    for (const NearTie& t : ties) nudges_[t.place].push_back(t.nudge);
  }

 private:
  void visit(const ChoicePlace& place, absl::Span<Buffer> operands, const KernelContext&) override {
    auto it = nudges_.find(place);
    if (it == nudges_.end()) return;
    for (const Nudge& n : it->second) operands[n.operand].mutable_data<double>()[n.element] = n.to;
  }

  std::map<ChoicePlace, std::vector<Nudge>> nudges_;
};

// Halves a set of ties as long as nudging it changes the results, and keeps single ones that bring
// the reference nearer to the partitioned program.
class Search {
 public:
  Search(const ReferenceRun& run, ChoiceJudge* judge, std::vector<Buffer> reference)
      : run_(run), judge_(*judge) {
    decided_.reference = std::move(reference);
    now_ = judge_.deviation(decided_.reference);
  }

  // Those nearest alone first: most likely it is one of them.
  Decided run(absl::Span<const NearTie> ties) {
    size_t size = 1;
    for (size_t at = 0; at < ties.size() && goes_on(); at += size, size *= 2) {
      size = std::min(size, ties.size() - at);
      descend(ties.subspan(at, size));
    }
    decided_.agrees = now_.agrees;
    return std::move(decided_);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int64_t kMaxRuns = 300;
  static constexpr std::chrono::seconds kPatience{120};
  static constexpr double kVisible = 1.0 / 64;  // of what is allowed

  bool goes_on() const {
    return !now_.agrees && decided_.runs < kMaxRuns && Clock::now() - start_ < kPatience;
  }

  void descend(absl::Span<const NearTie> group) {
    if (!goes_on()) return;
    ++decided_.runs;
    std::vector<NearTie> tried = decided_.ties;
    tried.insert(tried.end(), group.begin(), group.end());
    Nudger nudger(tried);
    std::vector<Buffer> reference;
    try {
      reference = run_(true, &nudger);
    } catch (const Error&) {  // a loop that does not end, for example
      return;
    }
    const Deviation then = judge_.deviation(reference);
    if (then.agrees || (group.size() == 1 && then.sum < now_.sum)) {
      decided_.ties = std::move(tried);
      decided_.reference = std::move(reference);
      now_ = then;
      return;
    }
    if (group.size() == 1 || judge_.change(reference, decided_.reference) < kVisible) return;
    descend(group.subspan(0, group.size() / 2));
    descend(group.subspan(group.size() / 2));
  }

  const ReferenceRun& run_;
  ChoiceJudge& judge_;
  Clock::time_point start_ = Clock::now();
  Decided decided_;
  Deviation now_;
};

}  // namespace

void ChoiceObserver::before(int64_t device, const Instr& i, absl::Span<Buffer> operands,
                            const KernelContext& context) {
  if (!chooses(i)) return;
  std::lock_guard lock(mutex_);
  visit({device, &i, occurrences_[{device, &i}]++}, operands, context);
}

std::optional<std::vector<NearTie>> find_near_ties(const ReferenceRun& run, int64_t memory_limit) {
  Tape tape(memory_limit);
  run(false, &tape);
  if (tape.full()) return std::nullopt;
  Finder finder(tape);
  run(true, &finder);
  std::vector<NearTie> ties = std::move(finder.ties());
  std::stable_sort(ties.begin(), ties.end(), [](const NearTie& a, const NearTie& b) {
    return std::tuple(a.nudge.share, a.place) < std::tuple(b.nudge.share, b.place);
  });
  return ties;
}

Decided decide_otherwise(const ReferenceRun& run, ChoiceJudge* judge,
                         const std::vector<NearTie>& ties, std::vector<Buffer> reference) {
  return Search(run, judge, std::move(reference)).run(ties);
}

}  // namespace gspmd
