#include "cells.hpp"

namespace coretap::stress {

std::uint64_t Outcome::seen() const {
  auto sum = shown;
  for (auto& [cause, count] : not_shown) sum += count;
  return sum;
}

std::string Outcome::sum() const {
  auto text = std::to_string(truth) + (seen() == truth ? " = " : " against ") +
              std::to_string(shown) + " shown";
  for (auto& [cause, count] : not_shown)
    if (count) text += " + " + std::to_string(count) + " " + cause;
  if (missed) text += " + " + std::to_string(missed) + " missed";
  return text;
}

}  // namespace coretap::stress
