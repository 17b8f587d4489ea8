// What each stage worked and moved, for a roofline.
//
//   law   a stage is set down with the multiply-accumulates of its operator's slice on its chip, for which it works,
//   and
//         with the bytes that it moved itself, of all its instances: of a load, what memory gave (a multicast set reads
//         once); of a store, what it took; of a receive, what landed; of a compute stage, its inputs and outputs. So
//         the same arithmetic stands over the bytes of every level of the memory (Williams et al., CACM 52(4) 2009, and
//         its hierarchical form).
//   peaks of one chip: of the PCUs that multiply, of the chip that has most of them, at the widest rate that a matmul
//         uses; of its HBM; of the links of the program that leave it; of the read ports of the PMUs beside these PCUs.
#pragma once

#include "sim/handshake_checker.h"
#include "sim/load.h"
#include "sim/report.h"

namespace rdusim {

// Fills StageRow::macs and StageRow::moved of report.stages, which has a row a stage, and Report::peaks.
void add_roofline(const LoadedProgram& loaded, const Instances& instances, const HandshakeChecker& counts,
                  Report& report);

}  // namespace rdusim
