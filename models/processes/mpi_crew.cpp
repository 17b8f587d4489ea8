#include "models/processes/mpi_crew.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace rdusim {

namespace {

std::optional<std::uint32_t> number_of(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const unsigned long n = std::strtoul(text, &end, 10);
  if (*end != '\0' || n > 1U << 20) return std::nullopt;
  return static_cast<std::uint32_t>(n);
}

}  // namespace

std::optional<MpiPlace> place_in_mpirun() {
  const auto size = number_of("OMPI_COMM_WORLD_SIZE"), rank = number_of("OMPI_COMM_WORLD_RANK");
  if (!size || !rank || *size < 2 || *rank >= *size) return std::nullopt;
  return MpiPlace{*rank, *size};
}

std::optional<std::string> mpi_module() {
  std::error_code wrong;
  const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe", wrong).parent_path();
  for (const char* place : {"librdusim_mpi.so", "../lib/librdusim_mpi.so"})
    if (!wrong && std::filesystem::exists(folder / place, wrong)) return (folder / place).string();
  return std::nullopt;
}

std::unique_ptr<Mail> join_mpi() {
  const auto file = mpi_module();
  // Open MPI's own parts look for its symbols among all that are loaded.
  void* module = file ? dlopen(file->c_str(), RTLD_NOW | RTLD_GLOBAL) : nullptr;
  if (module == nullptr) return nullptr;
  const auto join = reinterpret_cast<Mail* (*)()>(dlsym(module, "rdusim_join_mpi"));
  return std::unique_ptr<Mail>(join == nullptr ? nullptr : join());
}

}  // namespace rdusim
