// The time between attach and detach: events, reports, requests and signals, as they come.
#pragma once
#include <csignal>

#include "coretap/result.hpp"
#include "program/session.hpp"

namespace coretap {

class Command;
class Reporter;

/// Of --output: opens the file again, as logrotate's users know it.
inline constexpr int kReopenSignal = SIGUSR1;

/// The ledger with what kernel programs have counted until now.
Ledger whole_ledger(const Session& s);

/// Starts the command, if there is one, and shows events and reports until an end is due; then
/// detaches, and shows what is left. Fails if it cannot go on.
Result<void> trace(Session& s, Reporter& reporter, Command& command);

}  // namespace coretap
