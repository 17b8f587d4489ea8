#include "sim/load.h"

#include <filesystem>

#include "compiler/certificate/check.h"
#include "compiler/compile.h"
#include "compiler/ir/verify.h"
#include "compiler/program/prog_bin.h"
#include "compiler/support/file.h"

namespace rdusim {

std::string folder_of(const std::string& path) {
  return path == "-" ? std::string() : std::filesystem::path(path).parent_path().string();
}

namespace {

Result<LoadedProgram> program_of(const std::string& bytes, const std::string& where) {
  auto program = decode(bytes, where);
  if (!program) return program.diagnostics();
  LoadedProgram loaded;
  loaded.sha256 = sha256(std::string_view(bytes));
  loaded.program = std::move(program).value();
  const Header& header = loaded.program.header;
  if (sha256(std::string_view(header.target_text)) != header.target_sha256) {
    Diagnostics d;
    d.error(Code::RDU5009, where, "the machine '{}' that the program carries does not have the hash that it records",
            header.target_name);
    return d;
  }
  auto target = read_target(header.target_text, where + ": target");
  if (!target) return target.diagnostics();
  loaded.target = std::move(target).value();
  return loaded;
}

}  // namespace

Result<LoadedProgram> open_program(const std::string& path) {
  auto bytes = read_file(path, program_bytes_limit);
  if (!bytes) return bytes.diagnostics();
  auto loaded = program_of(*bytes, path == "-" ? "standard input" : path);
  if (loaded) loaded->folder = folder_of(path);
  return loaded;
}

namespace {

// Every chip link that the program names must be the same hop on the other machine.
void check_links(const SpatialProgram& p, const Target& was, const Target& now, const std::string& where,
                 Diagnostics& d) {
  std::size_t missing = 0;
  std::optional<LinkId> first;
  for (LinkId id : p.links) {
    if (id.value >= was.links.size()) continue;
    const ChipLinkParameters& a = was.links[id.value];
    if (id.value < now.links.size() && now.links[id.value].from == a.from && now.links[id.value].to == a.to) continue;
    ++missing;
    if (!first) first = id;
  }
  if (!first) return;
  const ChipLinkParameters& a = was.links[first->value];
  d.error(Code::RDU5009, where,
          "{} of the {} links that the program uses do not exist on '{}'; the first is link {} from chip{} to chip{}",
          missing, p.links.size(), now.name, first->value, a.from.value, a.to.value);
}

Result<LoadedProgram> move_to(LoadedProgram loaded, const std::string& name, const std::string& where) {
  auto target = find_target(name);
  if (!target) return target.diagnostics();
  Target now = std::move(target).value();
  const Target& was = loaded.target;
  SpatialProgram& p = loaded.program;
  Diagnostics d;
  if (now.native_tile != was.native_tile) {
    d.error(Code::RDU5009, where, "the program is cut into tiles of {}, and '{}' has tiles of {}", was.native_tile,
            now.name, now.native_tile);
  }
  if (now.mesh.width < was.mesh.width || now.mesh.height < was.mesh.height) {
    // A smaller mesh may still hold every site that the program uses; verify() says so of each below.
    if (p.placement && p.placement->mesh == was.mesh) {
      d.error(Code::RDU5009, where, "the program is placed on a mesh of {} x {}, and '{}' has {} x {}", was.mesh.width,
              was.mesh.height, now.name, now.mesh.width, now.mesh.height);
    }
  }
  if (now.chips < p.header.plan.chips) {
    d.error(Code::RDU5009, where, "the program uses {} chips, and '{}' has {}", p.header.plan.chips, now.name,
            now.chips);
  }
  check_links(p, was, now, where, d);
  if (d.has_errors()) return d;

  p.header.target_name = now.name;
  p.header.target_text = now.text;
  p.header.target_sha256 = now.sha256;
  if (p.placement) p.placement->mesh = now.mesh;
  const Diagnostics broken = verify(p, now);
  if (broken.has_errors()) {
    Diagnostic& e = d.error(Code::RDU5009, where, "the program's placement does not exist on '{}': {} rules are broken",
                            now.name, broken.error_count());
    for (const Diagnostic& b : broken.list())
      e.note(b.where, "RDU{} {}: {}", static_cast<int>(b.code), info(b.code).name, b.message);
    return d;
  }
  p.schedule.reset();
  p.certificate.reset();
  auto completed = complete(std::move(p), now);
  if (!completed) {
    Diagnostic& e = d.error(Code::RDU5009, where, "the program cannot be completed for '{}'", now.name);
    for (const Diagnostic& b : completed.diagnostics().list())
      e.note(b.where, "RDU{} {}: {}", static_cast<int>(b.code), info(b.code).name, b.message);
    return d;
  }
  loaded.program = std::move(completed).value();
  loaded.target = std::move(now);
  return loaded;
}

}  // namespace

Result<LoadedProgram> carried_program(const std::string& bytes, const std::string& where) {
  auto loaded = program_of(bytes, where);
  if (!loaded) return loaded;
  Diagnostics errors;
  const Diagnostics found = verify(loaded->program, loaded->target);
  for (const Diagnostic& d : found.list()) {
    if (d.severity == Severity::error && !obligation_of(d.code)) errors.add(d);
  }
  if (errors.has_errors()) return errors;
  return loaded;
}

Result<LoadedProgram> load_program(const std::string& path, const LoadOptions& options) {
  auto opened = open_program(path);
  if (!opened) return opened;
  const std::string where = path == "-" ? "standard input" : path;
  LoadedProgram loaded = std::move(opened).value();

  const ShardPlan compiled = loaded.program.header.plan;
  if (options.chips && *options.chips != compiled.chips && !compiled.portable) {
    Diagnostics d;
    d.error(Code::RDU6001, where, "the program was compiled for {} chip{}, and {} {} asked for", compiled.chips,
            compiled.chips == 1 ? "" : "s", *options.chips, *options.chips == 1 ? "is" : "are")
        .suggest("run it with --chips {}, or compile it without --chips", compiled.chips);
    return d;
  }
  // What is sharded, moved or run is first shown to be a program: the passes trust what they are given.
  Diagnostics errors;
  const auto judge = [&](const Diagnostics& found, auto&& may_pass) {
    for (Diagnostic d : found.list()) {
      if (d.severity == Severity::error && !(options.allow_refuted && may_pass(d.code))) {
        errors.add(std::move(d));
        continue;
      }
      d.severity = Severity::warning;
      loaded.warnings.add(std::move(d));
    }
  };
  judge(verify(loaded.program, loaded.target), [](Code c) { return obligation_of(c).has_value(); });
  if (errors.has_errors()) return errors;
  judge(check_certificate(loaded.program, loaded.target),
        [](Code c) { return c == Code::RDU5011 || c == Code::RDU5012; });
  if (errors.has_errors()) return errors;
  if (!options.target.empty()) {
    auto moved = move_to(std::move(loaded), options.target, where);
    if (!moved) return moved;
    loaded = std::move(moved).value();
  }
  if (!options.chips || *options.chips == compiled.chips) return loaded;
  ShardPlan plan = compiled;
  plan.chips = *options.chips;
  plan.portable = false;
  auto sharded = shard_loaded(loaded.program, plan, loaded.target);
  if (!sharded) return sharded.diagnostics();
  loaded.warnings.append(sharded.diagnostics());
  loaded.program = std::move(sharded).value();
  // Sharding has verified what it made.
  const Diagnostics unproved = check_certificate(loaded.program, loaded.target);
  if (unproved.has_errors()) return unproved;
  return loaded;
}

}  // namespace rdusim
