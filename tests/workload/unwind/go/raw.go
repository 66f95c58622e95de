package main

import (
	"syscall"
	"unsafe"
)

//go:noinline
func rawSleep(pause *[2]int64) {
	syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(pause)), 0, 0)
}
