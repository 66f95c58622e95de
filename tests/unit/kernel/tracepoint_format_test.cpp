// Formats of tracepoint records in tracefs.
#include "coretap/tracepoint_format.hpp"

#include "expect.hpp"

namespace coretap {
namespace {

constexpr std::string_view kText = R"(name: scsi_dispatch_cmd_done
ID: 912
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:u32 host_no;	offset:8;	size:4;	signed:0;
	field:char disk[32];	offset:12;	size:32;	signed:0;
	field:__data_loc unsigned char[] cmnd;	offset:44;	size:4;	signed:0;

print fmt: "host_no=%u field:int x; offset:7;", REC->host_no
)";

TEST(TracepointFormat, PlacesOfMembers) {
  auto format = parse_tracepoint_format(kText);
  EXPECT_EQ(format.at("host_no").at, 8u);
  EXPECT_EQ(format.at("disk").at, 12u);
  EXPECT_EQ(format.at("disk").size, 32u);
  EXPECT_EQ(format.at("cmnd").at, 44u);
  EXPECT_EQ(format.at("cmnd").size, 4u);
  EXPECT_FALSE(format.contains("opcode"));
}

TEST(TracepointFormat, OfNothing) {
  EXPECT_TRUE(parse_tracepoint_format("").empty());
  EXPECT_EQ(parse_tracepoint_format("field:int x; offset:99999999999;").at("x").at, 0u);
}

}  // namespace
}  // namespace coretap
