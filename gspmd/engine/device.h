#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/types/span.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gspmd/engine/buffer.h"
#include "gspmd/engine/kernel.h"
#include "gspmd/ir/module.h"
#include "gspmd/sharding/sharding.h"

namespace gspmd {

class ChoiceObserver;

// Where a program that is not partitioned yet enters or leaves a manual region. On one device of
// the reference run every device holds whole values outside; inside, its own block.
struct ManualBoundary {
  Sharding outside;  // how the whole value is cut: the manual axes among those of each dimension
  AxisSet manual;
};

// What all devices of a run share: the program, prepared for walking. Needs a verified module that
// outlives it.
class Program {
 public:
  explicit Program(const Module& module);

  struct Code {
    const Computation* computation = nullptr;
    std::vector<std::vector<uint32_t>>
        last_uses;  // by position: values that nothing reads afterwards
  };
  const Module& module() const { return module_; }
  const Code& code(const Computation& c) const { return *codes_.at(&c); }
  uint32_t position(const Instr& i) const { return positions_[i.id]; }
  // A constant, expanded once and shared by all devices.
  const Buffer& constant(const Instr& i) const { return constants_.at(&i); }
  Backend* backend() const { return backend_.get(); }
  absl::flat_hash_map<const Instr*, ManualBoundary>
      boundaries;  // of a program that is not partitioned yet

 private:
  const Module& module_;
  std::vector<uint32_t> positions_;  // by Instr::id
  absl::flat_hash_map<const Computation*, std::unique_ptr<Code>> codes_;
  absl::flat_hash_map<const Instr*, Buffer> constants_;
  std::unique_ptr<Backend> backend_ = make_onednn_backend();
};

// Trips after which a loop whose length the program does not say is taken for endless.
inline constexpr int64_t kMaxTrips = 10'000;

// One virtual device: a resumable interpreter. It never blocks a thread: where the program
// communicates, `run` returns and the device waits until `resume` gives it the collective's result.
class Device {
 public:
  enum class State : uint8_t { kReady, kWaiting, kDone };
  // `wide`: every float is computed as f64 (the reference run of check).
  Device(const Program& program, int64_t id, std::vector<Value> arguments, bool wide);

  // Evaluates one computation alone.
  Device(const Program& program, const Computation& c, std::vector<Value> arguments, bool wide);

  // Runs until done or until a collective. Throws Error with the instruction.
  State run();
  const Instr& waiting_for() const { return *waiting_; }
  std::vector<Value>& outgoing() { return outgoing_; }  // operands of the collective it waits for
  int64_t occurrence() const { return occurrence_; }  // how often it came to this collective before
  void resume(Value result);

  int64_t id() const { return id_; }
  void set_max_trips(int64_t n) { max_trips_ = n; }
  void set_observer(ChoiceObserver* o) { observer_ = o; }
  const Value& result() const { return result_; }

 private:
  struct Frame {
    const Program::Code* code = nullptr;
    size_t next = 0;
    std::vector<Value> values, arguments;
    Value state;                // of the loop at `next`
    bool in_condition = false;  // of that loop
    int64_t trips = 0;          // of that loop
  };

  void push(const Computation& c, std::vector<Value> arguments);
  void finish_frame();
  void returned(Value value);
  // Runs one instruction; false where it waits or another frame was pushed.
  bool step(Frame& f, const Instr& i);
  void set(Frame& f, const Instr& i, Value v);
  bool call_out(Frame& f, const Instr& i);
  bool compute(Frame& f, const Instr& i);
  Value value(Frame& f, const Instr& operand) const;
  Value boundary(Frame& f, const Instr& i);

  const Program& program_;
  int64_t id_;
  int64_t max_trips_ = kMaxTrips;
  KernelContext context_;
  ChoiceObserver* observer_ = nullptr;
  std::vector<Frame> frames_;
  const Instr* waiting_ = nullptr;
  std::vector<Value> outgoing_;
  int64_t occurrence_ = 0;
  absl::flat_hash_map<const Instr*, int64_t> occurrences_;
  Value result_;
};

// The block of a whole value that a device has inside a manual region.
Buffer block_of_device(const Buffer& whole, const ManualBoundary& boundary, int64_t device);
// What every device holds outside, from the blocks that all devices had inside (by device number).
Buffer whole_of_blocks(absl::Span<const Buffer> blocks, const ManualBoundary& boundary,
                       int64_t device);

// Whether an instruction waits for other devices.
bool communicates(const Instr& i, const Program& program);

// Evaluates a computation without communication on given arguments, e.g. a reducer on scalars.
Value evaluate(const Program& program, const Computation& c, std::vector<Value> arguments,
               bool wide);

}  // namespace gspmd
