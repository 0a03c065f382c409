// SPDX-License-Identifier: MIT

// Benchmarks of Go functions.  bench.c declares them; the loop itself is Go's, because a call from C
// to Go costs as much as a small function.
//
//	CGO_CFLAGS="$(pkg-config --cflags assay)" go build -buildmode=c-shared -o bench.so . && assay bench bench.so
package main

// #include <stdint.h>
import "C"

import "strings"

var fields int

//export splitFields
func splitFields(count C.uint64_t, words C.int64_t) C.int64_t {
	text := strings.Repeat("word ", int(words))
	for i := C.uint64_t(0); i < count; i++ {
		fields = len(strings.Fields(text))
	}
	return C.int64_t(fields)
}

func main() {}
