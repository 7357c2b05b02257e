package main

import (
	"context"
	"fmt"
	"os"
)

// maxBinary is the budget of the operator's binary, which is built as for its image, in
// bytes.
const maxBinary = 110_000_000

// binarySize measures the size of the operator's binary.
func binarySize(_ context.Context, o options) ([]row, error) {
	file, err := os.Stat(o.manager)
	if err != nil {
		return nil, fmt.Errorf("reading the size of the operator: %w", err)
	}
	return []row{heading("The operator's binary"), count("megabytes", megabytes(file.Size()), megabytes(maxBinary), "as in the image, uncompressed")}, nil
}

// megabytes returns a size in MB, rounded up.
func megabytes(size int64) int { return int((size + 999_999) / 1_000_000) }
