// The time between attach and detach: handles events, reports, requests and signals.
#pragma once
#include <csignal>

#include "coretap/result.hpp"
#include "program/session.hpp"

namespace coretap {

class Command;
class Reporter;

/// For --output: opens the file again, as users of logrotate expect.
inline constexpr int kReopenSignal = SIGUSR1;

/// The ledger including the counts of kernel programs until now.
Ledger whole_ledger(const Session& s);

/// Starts the command, if there is one, and shows events and reports until the end; then detaches,
/// and shows the remaining data. Fails if it cannot continue.
Result<void> trace(Session& s, Reporter& reporter, Command& command);

}  // namespace coretap
