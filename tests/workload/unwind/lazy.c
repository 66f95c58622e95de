/* A library whose calls of its own functions go by its procedure linkage table. */

#define FRAME __attribute__((noinline, used))

FRAME void plt_nothing(void)
{
	__asm__ volatile("");
}

FRAME void plt_calls(int count)
{
	for (int i = 0; i < count; i++)
		plt_nothing();
}

/* Names that take the dynamic linker some time. */
#define LAZY(n) lazy_function_of_a_name_that_is_long_enough_to_be_slow_to_hash_and_to_compare_##n
#define DEFINE(n)                                                                                  \
	FRAME void LAZY(n)(void)                                                                   \
	{                                                                                          \
		__asm__ volatile("");                                                              \
	}
#define CALL(n) LAZY(n)();

#define TEN(DO, n)                                                                                 \
	DO(n##0) DO(n##1) DO(n##2) DO(n##3) DO(n##4) DO(n##5) DO(n##6) DO(n##7) DO(n##8) DO(n##9)
#define HUNDRED(DO, n)                                                                             \
	TEN(DO, n##0)                                                                              \
	TEN(DO, n##1)                                                                              \
	TEN(DO, n##2)                                                                              \
	TEN(DO, n##3)                                                                              \
	TEN(DO, n##4) TEN(DO, n##5) TEN(DO, n##6) TEN(DO, n##7) TEN(DO, n##8) TEN(DO, n##9)
#define THOUSANDS(DO)                                                                              \
	HUNDRED(DO, 0)                                                                             \
	HUNDRED(DO, 1)                                                                             \
	HUNDRED(DO, 2)                                                                             \
	HUNDRED(DO, 3)                                                                             \
	HUNDRED(DO, 4)                                                                             \
	HUNDRED(DO, 5)                                                                             \
	HUNDRED(DO, 6)                                                                             \
	HUNDRED(DO, 7)                                                                             \
	HUNDRED(DO, 8)                                                                             \
	HUNDRED(DO, 9)                                                                             \
	HUNDRED(DO, 10)                                                                            \
	HUNDRED(DO, 11)                                                                            \
	HUNDRED(DO, 12)                                                                            \
	HUNDRED(DO, 13)                                                                            \
	HUNDRED(DO, 14)                                                                            \
	HUNDRED(DO, 15) HUNDRED(DO, 16) HUNDRED(DO, 17) HUNDRED(DO, 18) HUNDRED(DO, 19)

THOUSANDS(DEFINE)

FRAME void lazy_calls(void)
{
	THOUSANDS(CALL)
}
