// From a file to a program that may run: decoded, verified, its certificate proved again, on the machine asked for.
#pragma once

#include <optional>
#include <string>

#include "compiler/ir/program.h"
#include "compiler/support/result.h"

namespace rdusim {

inline constexpr std::uint64_t program_bytes_limit = std::uint64_t{1} << 31;

struct LoadOptions {
  std::optional<std::uint32_t> chips;  // absent: as compiled
  std::string target;                  // name or file of a changed machine; empty: the one that the program carries
  // A refuted obligation, and a broken rule that says the same, is a warning, so that its consequence can be watched.
  bool allow_refuted = false;
};

struct LoadedProgram {
  SpatialProgram program;
  Target target;
  std::string folder;  // what file fills are relative to; empty: the working folder
  std::string sha256;  // of the file's bytes
  Diagnostics warnings;
};

// Bytes to a program and its target; nothing is proved yet. `path` names them in messages. Errors: RDU1001, RDU1024,
// RDU5001-RDU5005, RDU2002-RDU2008 (the carried target), RDU5009 where its text does not have the hash that the program
// records.
Result<LoadedProgram> open_program(const std::string& path);

// open_program(), then the machine of `options`, the chips (a portable program is sharded here), verify() and
// check_certificate().
//
// A changed machine is one on which the placement exists: the same tile, mesh, sites, links and hand-offs; its
// certificate is worked out again, since bounds follow from the machine. Errors: those above, RDU2001, RDU5009 no such
// placement there, RDU6001 another number of chips, RDU4xxx sharding, RDU3xxx, RDU5010-RDU5012.
Result<LoadedProgram> load_program(const std::string& path, const LoadOptions& options);

// A program that ran and is carried elsewhere, in an event log: opened and verified. What its run allowed (a refuted
// obligation) is allowed again. Errors: as open_program(), RDU3xxx.
Result<LoadedProgram> carried_program(const std::string& bytes, const std::string& where);

// The folder part of a path; empty for a bare name and for "-".
std::string folder_of(const std::string& path);

}  // namespace rdusim
