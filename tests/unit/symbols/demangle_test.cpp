#include "symbols/demangle.hpp"

#include "expect.hpp"

namespace coretap::symbols {
TEST(Demangle, Cxx) {
  EXPECT_EQ(demangle("_ZN3Foo3barEil"), "Foo::bar(int, long)");
  EXPECT_EQ(demangle("_ZNKSt6vectorIiSaIiEE4sizeEv"),
            "std::vector<int, std::allocator<int> >::size() const");
  EXPECT_EQ(demangle("_Z3foov.cold"), "foo() [clone .cold]");
}

TEST(Demangle, LegacyRustLosesItsHash) {
  EXPECT_EQ(demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt");
  EXPECT_EQ(demangle("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE.llvm.1234"),
            "core::fmt::Write::write_fmt");
  EXPECT_EQ(
      demangle("_ZN57_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$"
               "4drop17h0123456789abcdefE"),
      "_ZN57_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$4drop17h0123456789abcdefE")
      << "a wrong length";
  EXPECT_EQ(demangle("_ZN60_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$"
                     "4drop17h0123456789abcdefE"),
            "<alloc::vec::Vec<T> as core::ops::Drop>::drop");
  // Not quite a hash: C++ then.
  EXPECT_EQ(demangle("_ZN1a17h0123456789abcdeXEv"), "a::h0123456789abcdeX()");
}

TEST(Demangle, Rust) {
  EXPECT_EQ(demangle("_RNvC1a1b"), "a::b");
  EXPECT_EQ(demangle("_RNvNtCs1234_7mycrate3foo3bar"), "mycrate::foo::bar");
  EXPECT_EQ(demangle("_RNvMNtCs1234_7mycrate3fooNtB2_3Bar3baz"), "<mycrate::foo::Bar>::baz");
  EXPECT_EQ(demangle("_RINvNtC3std3mem8align_ofjE"), "std::mem::align_of::<usize>");
  EXPECT_EQ(demangle("_RNvC6_123foo3bar"), "123foo::bar");
}

TEST(Demangle, LeavesOthersAlone) {
  for (const char* name : {"", "main", "_start", "_Z", "_ZN", "_ZNE", "_Zgarbage!", "_R", "_RNv",
                           "_Rgarbage!", "_ZN99999999999999999999999999aE", "_ZN5abE", "Java_foo"})
    EXPECT_EQ(demangle(name), name);
}

TEST(Demangle, BoundsTheLength) {
  std::string name = "_Z1f";
  while (name.size() < 5000) name += "3abc";
  EXPECT_EQ(demangle(name), name);
}

// Each argument's type holds the one before twice: 40 steps would make terabytes.
TEST(Demangle, BoundsTheResult) {
  static constexpr char kDigits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string name = "_Z1f1aIiiES_IS0_S0_E";
  for (int i = 1; i < 34; ++i) {
    const std::string last = std::string("S") + kDigits[i] + "_";
    name += "S_I" + last + last + "E";
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(demangle(name), name);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(1));
}

TEST(Demangle, KnowsWhereParametersBegin) {
  for (std::string_view name : {"run", "ns::run", "(anonymous namespace)::run", "Class::operator()",
                                "std::map<int (*)(char), long>::find", "operator<<",
                                "ns::operator>", "Class::operator<=<int>"}) {
    EXPECT_EQ(parameters_at(name), name.size()) << name;
    EXPECT_EQ(parameters_at(std::string(name) + "(int (*)(char)) const"), name.size()) << name;
  }
}

}  // namespace coretap::symbols
