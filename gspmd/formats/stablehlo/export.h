#pragma once

#include <string>
#include <vector>

#include "gspmd/ir/module.h"
#include "gspmd/sharding/sharding.h"

namespace gspmd {

// The module as StableHLO text in generic operation forms, which jaxlib's parser reads. Annotations
// become mhlo.sharding strings. Throws Error for what StableHLO has no operation for.
std::string print_stablehlo(const Module& module);

// The global interface around a per-device program: one function of global arrays whose body is a
// `sdy.manual_computation` over all axes of the mesh, so that a runtime that knows Shardy hands
// each device its blocks and inserts nothing.
struct GlobalInterface {
  std::vector<Shape> parameters, results;  // global
  std::vector<Sharding> parameter_shardings, result_shardings;
};
// Throws Error where the shardings are over several meshes, leave blocks of different sizes, or are
// pending: what sdy's region can not say.
std::string print_stablehlo(const Module& per_device, const GlobalInterface& interface);

}  // namespace gspmd
