// All words of trace's command line: compiles them to code for the kernel program, and turns its
// records into messages.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/fields.hpp"
#include "coretap/result.hpp"
#include "general/trace.h"
#include "tools/general/trace/probe.hpp"

namespace coretap {
class Config;
class Names;
struct Session;
}  // namespace coretap

namespace coretap::tracing {

inline constexpr std::uint64_t kMostText = 1024;

class Probes {
 public:
  std::string message(const trace_event& e, const FieldContext& context) const;
  std::vector<std::string> values(const trace_event& e, const FieldContext& context) const;

  /// As an answer of a recording: what messages are made from.
  std::string packed() const;
  /// Takes that. False: it is of other structs, or damaged.
  bool take(std::string_view bytes);

  std::vector<std::shared_ptr<Probe>> all;  ///< by the number of the word
  std::vector<std::size_t> words;           ///< the word of each target, by id
  const Names* names = nullptr;             ///< of the session
  std::uint32_t text_bytes = 80;
  std::size_t values_at = 0;  ///< offset of the struct expression_out in a record
  bool names_kernel = false;  ///< some values are addresses of kernel functions

 private:
  struct Shown {
    const Probe* probe = nullptr;
    std::vector<expression::Shown> values = {};
    expression::Namers namers = {};
  };
  Shown shown(const trace_event& e, const FieldContext& context) const;
};

/// Stored in the configuration (Config::own); the plan, and with it the code, may be made again.
struct Held {
  std::shared_ptr<Probes> probes = std::make_shared<Probes>();
};

/// The targets of all words.
std::vector<std::string> specs(const Config& config);
/// For Tool::look_up and Tool::compile.
Result<void> parse_probes(Config& config);
/// While a recording is shown: takes what it has of that.
Result<void> compile_probes(Session& s);

}  // namespace coretap::tracing
