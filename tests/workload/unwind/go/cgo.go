//go:build withc

// Calls from Go to C and back.
package main

/*
#include <stdint.h>
extern void goBack(int);
static volatile uint64_t cValue;
__attribute__((noinline)) static void cSpin(int rounds) {
	for (int i = 0; i < rounds; i++) cValue += i * cValue;
}
__attribute__((noinline)) static void cCalls(int how) {
	if (how) goBack(how); else cSpin(20000000);
	cValue++;
}
*/
import "C"

import (
	"os"
	"sync/atomic"
	"time"
)

//export goBack
func goBack(how C.int) { back(int(how)) }

//go:noinline
func back(how int) {
	end := time.Now().Add(50 * time.Millisecond)
	x := uint64(1)
	for i := 0; i&0xffff != 0xffff || time.Now().Before(end); i++ {
		x = leafAdd(x, 3) + leafFrame(x)
	}
	sink.Store(x)
}

//go:noinline
func intoC(how int) { C.cCalls(C.int(how)) }

//go:noinline
func cEnd() {
	for atomic.LoadInt32(&stop) == 0 {
		intoC(0)
		intoC(1)
	}
}

func init() {
	if len(os.Args) > 1 && os.Args[1] == "c" {
		time.AfterFunc(5*time.Second, func() { atomic.StoreInt32(&stop, 1) })
		chain(10, cEnd)
		os.Exit(0)
	}
}
