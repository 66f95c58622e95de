#include "symbols/demangle.hpp"

#include "expect.hpp"

namespace coretap::symbols {
TEST(Demangle, CxxAndRust) {
  expect_each(
      [](const std::string& name) { return demangle(name); },
      {"_ZN3Foo3barEil => Foo::bar(int, long)", "_Z3foov.cold => foo() [clone .cold]",
       "_ZNKSt6vectorIiSaIiEE4sizeEv => std::vector<int, std::allocator<int> >::size() const",
       // The hash of legacy Rust is removed.
       "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE => core::fmt::Write::write_fmt",
       "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE.llvm.1234 => core::fmt::Write::write_fmt",
       "_ZN60_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$4drop17h0123456789abcdefE"
       " => <alloc::vec::Vec<T> as core::ops::Drop>::drop",
       // Not a valid hash: treated as C++.
       "_ZN1a17h0123456789abcdeXEv => a::h0123456789abcdeX()", "_RNvC1a1b => a::b",
       "_RNvNtCs1234_7mycrate3foo3bar => mycrate::foo::bar",
       "_RNvMNtCs1234_7mycrate3fooNtB2_3Bar3baz => <mycrate::foo::Bar>::baz",
       "_RINvNtC3std3mem8align_ofjE => std::mem::align_of::<usize>",
       "_RNvC6_123foo3bar => 123foo::bar"});
}

TEST(Demangle, LeavesOthersAlone) {
  for (const char* name : {"", "main", "_start", "_Z", "_ZN", "_ZNE", "_Zgarbage!", "_R", "_RNv",
                           "_Rgarbage!", "_ZN99999999999999999999999999aE", "_ZN5abE", "Java_foo",
                           // A wrong length.
                           "_ZN57_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$"
                           "4drop17h0123456789abcdefE"})
    EXPECT_EQ(demangle(name), name);
}

TEST(Demangle, BoundsTheLength) {
  std::string name = "_Z1f";
  while (name.size() < 5000) name += "3abc";
  EXPECT_EQ(demangle(name), name);
}

// Each argument's type contains the previous one twice: 40 steps would make terabytes.
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
                                "ns::operator>", "Class::operator<=<int>", "ns::operator><int>"}) {
    EXPECT_EQ(parameters_at(name), name.size()) << name;
    EXPECT_EQ(parameters_at(std::string(name) + "(int (*)(char)) const"), name.size()) << name;
  }
  EXPECT_EQ(parameters_at("f()::{lambda(int)#1}::operator()(int) const"), 32U);
}

// Symbols from g++ and rustc, and their possible names in the source.
TEST(Demangle, NamesInTheSource) {
  const std::pair<const char*, std::vector<std::string>> known[] = {
      {"_ZN2ns4convIiEET_i",
       {"ns::conv<int>(int)", "ns::conv<int>", "ns::conv", "int ns::conv<int>"}},
      {"_ZN2ns1VIiE4convIlEEiT_", {"ns::V<int>::conv<long>", "ns::V<int>::conv", "ns::V::conv"}},
      {"_ZN2ns4textB5cxx11Ei", {"ns::text", "ns::text(int)"}},
      {"_ZN2ns5tableIiNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEEESt3mapIT_T0_St4lessIS7_"
       "ESaISt4pairIKS7_S8_EEEi",
       {"ns::table<int, std::string>", "ns::table<int, std::string>(int)"}},
      {"_ZN2ns4takeESt6vectorIS0_IiSaIiEESaIS2_EE", {"ns::take(std::vector<std::vector<int>>)"}},
      {"_ZN2ns2fpIiEEPFiT_ES1_", {"ns::fp<int>(int)", "ns::fp<int>", "ns::fp"}},
      {"_ZN2ns12_GLOBAL__N_14anonIiEET_S2_", {"ns::anon<int>(int)", "ns::anon<int>", "ns::anon"}},
      {"_ZN2ns1VIiEltIlEEbT_", {"ns::V<int>::operator<", "ns::V::operator<"}},
      {"_ZN2ns1VIiEclIlEET_S2_S2_", {"ns::V<int>::operator()<long>", "ns::V::operator()"}},
      {"_RINvC4spin4convmE", {"spin::conv::<u32>", "spin::conv"}},
      {"_RNvMC4spinINtB2_5ThingmE5churn", {"<spin::Thing<u32>>::churn", "spin::Thing::churn"}},
  };
  for (auto& [mangled, wanted] : known) {
    const auto names = names_in_source(mangled);
    for (auto& name : wanted)
      EXPECT_NE(std::ranges::find(names, name), names.end()) << mangled << ": " << name;
    for (auto& name : names)
      EXPECT_NE(std::string_view(mangled).find(part_in_symbol(name)), std::string_view::npos)
          << mangled << ": " << name;
  }
  EXPECT_EQ(part_in_symbol("ns::conv<int>"), "conv");
  // A nested function does not match the name of the outer one.
  const auto inner = names_in_source("_ZZN2ns3locEiEN1L3runEi");
  EXPECT_EQ(std::ranges::find(inner, "ns::loc"), inner.end());
  EXPECT_NE(std::ranges::find(inner, "ns::loc::L::run"), inner.end());
}

}  // namespace coretap::symbols
