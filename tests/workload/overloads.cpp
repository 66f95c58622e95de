// C++ functions that share a name: overloads, a method, templates, an unnamed namespace. Each is
// called a known number of times.
#include <cstdlib>
#include <string>

namespace app
{

struct Base {
	virtual ~Base() = default;
	int number = 0;
};

enum class Kind : unsigned char { get = 3, put = 9 };

class Request : public Base
{
      public:
	__attribute__((noipa)) int handle(int count, const std::string &text, Kind kind);
	__attribute__((noipa)) int handle(long only);
	template <class T> __attribute__((noipa)) T as(int count)
	{
		return static_cast<T>(count + number);
	}
	bool fast = true;
};

template <class T> __attribute__((noipa)) T converted(int count)
{
	return static_cast<T>(count);
}

__attribute__((noipa)) std::string text_of(int count)
{
	return std::string(static_cast<std::size_t>(count), 't');
}

int Request::handle(int count, const std::string &text, Kind kind)
{
	return count + static_cast<int>(text.size()) + static_cast<int>(kind) + number;
}
int Request::handle(long only)
{
	return static_cast<int>(only);
}

namespace
{
__attribute__((noipa)) int hidden(int value)
{
	return value * 2;
}
} // namespace

} // namespace app

int main(int argc, char **argv)
{
	const int calls = argc > 1 ? std::atoi(argv[1]) : 5;
	app::Request request;
	int sum = 0;
	for (int i = 0; i < calls; i++) {
		request.number = 10 * i;
		request.fast = i % 2;
		sum += request.handle(i, "text", i % 2 ? app::Kind::put : app::Kind::get);
		sum += request.handle(i + 1000L) + app::hidden(i);
		sum += app::converted<int>(i) + static_cast<int>(app::converted<long>(i));
		sum += static_cast<int>(request.as<long>(i)) +
		       static_cast<int>(app::text_of(i).size());
	}
	return sum < 0;
}
