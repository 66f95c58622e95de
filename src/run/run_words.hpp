// Messages of a run about itself: header, attach points, ledger.
#pragma once
#include <string>

namespace coretap {

struct Session;

/// The build, as printed after the version: "commit 0123456789ab, libbpf 1.1, compiler GNU 12.2.0".
std::string build_words();

/// Asks for all that print_header() needs: while a run is recorded.
void record_header(const Session& s);
/// The first line of --json.
void print_header(Session& s);
/// To standard error: attach points if requested, and the traced targets.
void announce(Session& s);
/// For --explain: the attach points, and the sizes of maps.
void print_plan(Session& s);
/// At the end: a line of --json, and losses to standard error.
void print_ledger(Session& s);

}  // namespace coretap
