// Goroutines whose stacks grow and move, that panic and recover, while the garbage collector runs.
package main

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

//go:noinline
func grow(n int) int {
	var b [512]byte
	b[n%512] = byte(n)
	if n == 0 {
		return 0
	}
	return grow(n-1) + int(b[n%512])
}

//go:noinline
func fails(n int) (r int) {
	defer func() {
		if recover() != nil {
			r = -n
		}
	}()
	if n%3 == 0 {
		panic("three")
	}
	return n
}

func main() {
	results := make(chan int)
	for g := 0; g < 8; g++ {
		go func() {
			s := 0
			for i := 0; i < 100; i++ {
				s += grow(i) + fails(i)
				if i%25 == 0 {
					runtime.GC()
					time.Sleep(time.Millisecond)
				}
			}
			results <- s
		}()
	}
	t := 0
	for g := 0; g < 8; g++ {
		t += <-results
	}
	fmt.Println("ended with", t)
	os.Exit(7)
}
