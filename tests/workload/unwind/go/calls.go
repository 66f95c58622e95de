// Chains of calls of all kinds, 50 levels deep, in several goroutines; prints what Go's own runtime
// says of each at its end, innermost function first, as a line of JSON. Arguments: END SECONDS.
//
//	spin   computes at the end, by calls of small functions that have no frame
//	churn  goes down and up all the time
//	sleep  waits at the end, in several ways
//	grow   starts goroutines whose stacks have to grow
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const levels = 50

var stop int32
var out sync.Mutex

type shape interface{ visit(n int, end func()) uint64 }
type node struct{ next *node }
type other struct{ a, b uint64 }

//go:noinline
func (n *node) visit(level int, end func()) uint64 { return chain(level-1, end) + 1 }

//go:noinline
func (o *other) visit(level int, end func()) uint64 { o.a += chain(level-1, end); return o.a }

//go:noinline
func direct(n int, end func()) uint64 { return chain(n-1, end) + 2 }

//go:noinline
func closure(n int, end func()) uint64 {
	sum := uint64(0)
	f := func() { sum += chain(n-1, end) }
	call(f)
	return sum
}

//go:noinline
func call(f func()) { f() }

//go:noinline
func deferred(n int, end func()) (sum uint64) {
	defer func() { sum = chain(n-1, end) }()
	return 3
}

//go:noinline
func deferredInLoop(n int, end func()) (sum uint64) {
	for i := 0; i < 1; i++ {
		defer func() { sum = chain(n-1, end) }()
	}
	return 3
}

//go:noinline
func large(n int, end func()) uint64 {
	var space [2000]byte
	fill(space[:])
	return chain(n-1, end) + uint64(space[n])
}

//go:noinline
func fill(b []byte) {
	for i := range b {
		b[i] = byte(i)
	}
}

//go:noinline
func many(n int, end func(), a, b, c, d, e, f, g, h, i, j, k, l uint64) uint64 {
	return chain(n-1, end) + a + b + c + d + e + f + g + h + i + j + k + l
}

//go:noinline
func variadic(n int, end func(), more ...interface{}) uint64 {
	return chain(n-1, end) + uint64(len(more))
}

//go:noinline
func panics(n int, end func()) (sum uint64) {
	defer func() {
		recover()
		sum = chain(n-1, end)
	}()
	panic("expected")
}

//go:noinline
func faults(n int, end func()) (sum uint64) {
	defer func() {
		sum = chain(n-1, end)
		recover()
	}()
	return nothing(nil)
}

//go:noinline
func nothing(o *other) uint64 { return twice(o.b) + o.a }

//go:noinline
func twice(x uint64) uint64 { return 2 * x }

//go:noinline
func sorts(n int, end func()) (sum uint64) {
	once := true
	words := []int{3, 1, 2}
	sort.Slice(words, func(i, j int) bool {
		if once {
			once = false
			sum = chain(n-1, end)
		}
		return words[i] < words[j]
	})
	return sum
}

//go:noinline
func reflects(n int, end func()) uint64 {
	values := reflect.ValueOf(direct).Call([]reflect.Value{reflect.ValueOf(n), reflect.ValueOf(end)})
	return values[0].Uint()
}

// Some kinds are left out where they are too slow, or allocate: then the collector runs all the time.
var slow = true

var theNode node
var theOther other

//go:noinline
func chain(n int, end func()) uint64 {
	if n <= 0 {
		end()
		return 1
	}
	var s shape = &theNode
	switch n % 14 {
	case 0:
		return direct(n, end)
	case 1:
		return theNode.visit(n, end)
	case 2:
		return s.visit(n, end)
	case 3:
		s = &theOther
		return s.visit(n, end)
	case 4:
		return closure(n, end)
	case 5:
		return deferred(n, end)
	case 6:
		return deferredInLoop(n, end)
	case 7:
		return large(n, end)
	case 8:
		return many(n, end, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	case 9:
		return variadic(n, end, 1, "two")
	}
	if !slow {
		return direct(n, end)
	}
	switch n % 14 {
	case 10:
		return sorts(n, end)
	case 11:
		return panics(n, end)
	case 12:
		return faults(n, end)
	}
	return reflects(n, end)
}

//go:noinline
func leafAdd(a, b uint64) uint64 { return a*b + 7 }

//go:noinline
func leafMix(a uint64) uint64 { return a ^ a>>29 }

//go:noinline
func leafFrame(a uint64) uint64 { return leafMix(a) + leafAdd(a, a) }

func tell() {
	pcs := make([]uintptr, 1000)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	names := []string{}
	for {
		f, more := frames.Next()
		if f.Func != nil { // not inlined
			names = append(names, f.Function)
		}
		if !more {
			break
		}
	}
	text, _ := json.Marshal(names)
	out.Lock()
	fmt.Println(string(text))
	out.Unlock()
}

//go:noinline
func spinEnd() {
	tell()
	x := uint64(1)
	for i := 0; ; i++ {
		x = leafAdd(x, 3)
		x = leafMix(x) + leafFrame(x)
		if i&1023 == 0 && atomic.LoadInt32(&stop) != 0 {
			break
		}
	}
	sink.Store(x)
}

var sink atomic.Value

//go:noinline
func quietEnd() { leafFrame(7) }

//go:noinline
func tellEnd() { tell(); leafFrame(7) }

//go:noinline
func sleepEnd() {
	tell()
	for atomic.LoadInt32(&stop) == 0 {
		time.Sleep(time.Millisecond)
	}
}

//go:noinline
func syscallEnd() {
	tell()
	for atomic.LoadInt32(&stop) == 0 {
		pause := syscall.Timespec{Nsec: 1000000}
		syscall.Nanosleep(&pause, nil)
	}
}

//go:noinline
func rawEnd() {
	tell()
	for atomic.LoadInt32(&stop) == 0 {
		pause := [2]int64{0, 1000000}
		rawSleep(&pause)
	}
}

//go:noinline
func work(end func(), again bool) {
	for {
		chain(levels, end)
		if !again || atomic.LoadInt32(&stop) != 0 {
			return
		}
		end = quietEnd
	}
}

//go:noinline
func grows(n int) int {
	var space [200]byte
	fill(space[:])
	if n == 0 {
		return int(space[0])
	}
	return grows(n-1) + int(space[n&63])
}

func main() {
	seconds, _ := strconv.ParseFloat(os.Args[2], 64)
	time.AfterFunc(time.Duration(seconds*float64(time.Second)), func() { atomic.StoreInt32(&stop, 1) })
	var group sync.WaitGroup
	run := func(f func()) {
		group.Add(1)
		go func() {
			f()
			group.Done()
		}()
	}
	switch os.Args[1] {
	case "spin":
		run(func() { work(spinEnd, false) })
		work(spinEnd, false)
	case "churn":
		slow = len(os.Args) > 3
		run(func() { work(tellEnd, true) })
		work(tellEnd, true)
	case "sleep":
		run(func() { work(syscallEnd, false) })
		run(func() { work(rawEnd, false) })
		run(func() { work(sleepEnd, false) })
		work(syscallEnd, false)
	case "grow":
		for atomic.LoadInt32(&stop) == 0 {
			run(func() { grows(100) })
			group.Wait()
		}
	}
	atomic.StoreInt32(&stop, 1)
	group.Wait()
}
