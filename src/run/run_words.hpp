// What a run says of itself: header, attach points, ledger.
#pragma once

namespace coretap {

struct Session;

/// The first line of --json.
void print_header(Session& s);
/// To standard error: limits of this kernel, attach points if asked for, and what is traced.
void announce(Session& s);
/// For --explain: where everything would be attached, and the sizes of maps.
void print_plan(Session& s);
/// At the end: as a line of --json, and what was lost to standard error.
void print_ledger(Session& s);

}  // namespace coretap
