// The processes of one run that mpirun has started, on one computer or several.
//
// MPI is in a module of its own, librdusim_mpi.so beside rdusim or in ../lib of its folder: who does not come by mpirun
// loads nothing, and pays nothing. A process that dies is mpirun's concern: it ends the others.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "models/processes/mail.h"

namespace rdusim {

// Which of how many processes this is, where Open MPI's mpirun started more than one.
struct MpiPlace {
  std::uint32_t rank = 0, size = 1;
};
std::optional<MpiPlace> place_in_mpirun();

// Whether there is such a module. The file, or nothing.
std::optional<std::string> mpi_module();

// Joins the others; all have to. Nothing where the module cannot be loaded.
std::unique_ptr<Mail> join_mpi();

}  // namespace rdusim
