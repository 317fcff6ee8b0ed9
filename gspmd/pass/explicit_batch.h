#pragma once

#include "gspmd/ir/module.h"

namespace gspmd {

// Makes the batch dimensions of gathers and scatters explicit (section 4.2 of the paper's "index
// parallel" way): where one component of the index vector is only the number of the batch,
//
//   both = concatenate(iota over dimension 0, i);  gather(x, both), start_index_map={0,1}
//
// becomes a gather at `i` with operand_batching_dims={0}, start_indices_batching_dims={0}, whose
// batch the rule can split. Also folds get-dimension-size of sizes that are known.
void make_batches_explicit(Module* module);

}  // namespace gspmd
