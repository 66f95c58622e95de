#include "fuzz.hpp"
#include "mcp/message.hpp"
#include "mcp/offer.hpp"

using namespace coretap;

/// A line of standard input: a request, and the command line of a call in it.
FUZZ(mcp_message, bytes) {
  static const auto kOffer = mcp::offer_of("why");
  auto message = mcp::message_in(bytes);
  if (auto* wrong = std::get_if<mcp::Failure>(&message)) {
    MUST(!wrong->words.empty() && fuzz::is_json(mcp::failure(*wrong)));
    return;
  }
  auto* request = std::get_if<mcp::Request>(&message);
  if (!request) return;
  MUST(fuzz::is_json(mcp::failure({request->id, mcp::kNoMethod, request->method})));
  auto call = mcp::call_of(kOffer, mcp::member(request->params(), "arguments"));
  if (!call) {
    MUST(!call.error().what.empty());
    return;
  }
  MUST(call->seconds >= kOffer.least_seconds && call->seconds <= mcp::kMostSeconds);
  for (std::size_t i = 3; i + 1 < call->words.size(); i++) MUST(call->words[i].starts_with("--"));
  for (auto& word : call->words) MUST(word.find('\0') == word.npos);
}
