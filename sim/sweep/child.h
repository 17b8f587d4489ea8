// One child process of a sweep.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

namespace rdusim {

// Runs a program and waits: its status as a shell gives it (128 + n after signal n; 127 where it could not be started),
// or nothing where `stop` was raised, and the child killed. Standard input and output are /dev/null, standard error is
// the file. The child is killed when the calling thread ends.
std::optional<int> run_child(const std::vector<std::string>& arguments, const std::string& error_file,
                             const std::atomic<bool>* stop);

}  // namespace rdusim
