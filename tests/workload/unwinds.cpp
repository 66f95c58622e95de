// Functions left by exceptions and cancelled threads, and one that ends by a jump to another.
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace
{

int caught, destroyed;
int waiting[2];

struct Held {
	~Held()
	{
		__atomic_add_fetch(&destroyed, 1, __ATOMIC_SEQ_CST);
	}
};

} // namespace

extern "C" {

__attribute__((noipa)) int throws_odd(int i)
{
	if (i % 2)
		throw i;
	return i;
}

__attribute__((noipa)) int passed(int i)
{
	Held held;
	return throws_odd(i) + 1;
}

__attribute__((noipa)) void waits()
{
	Held held;
	char byte = 0;
	if (write(waiting[1], &byte, 1) == 1)
		for (;;)
			pause(); // where it is cancelled
}

__attribute__((noipa)) int last(int i)
{
	return i + 1;
}

__attribute__((noipa)) int ends_elsewhere(int i)
{
	return last(i + 1);
}

} // extern "C"

namespace
{

void *thread(void *)
{
	waits();
	return nullptr;
}

void cancel_one()
{
	pthread_t id;
	char byte;
	if (pthread_create(&id, nullptr, thread, nullptr) || read(waiting[0], &byte, 1) != 1)
		std::exit(1);
	pthread_cancel(id);
	pthread_join(id, nullptr);
}

} // namespace

// Makes this many calls, and writes the results to a file.
int main(int argc, char **argv)
{
	const int calls = argc > 2 ? std::atoi(argv[1]) : 0;
	int sum = 0;
	if (pipe(waiting))
		return 1;
	for (int i = 0; i < calls; i++) {
		try {
			sum += passed(i);
		} catch (int) {
			caught++;
		}
		sum += ends_elsewhere(last(i));
		cancel_one();
	}
	auto *file = std::fopen(argv[argc - 1], "w");
	if (!file)
		return 1;
	std::fprintf(file, "%d calls, %d caught, %d destroyed", calls, caught, destroyed);
	std::fclose(file);
	return sum < 0;
}
