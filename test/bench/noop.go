package main

import (
	"context"
	"fmt"
	"math"
	"os/exec"
	"strings"

	"github.com/privatecloud/operator/internal/testkit"
)

const (
	noopPackage = "./internal/controller/vm"
	noopName    = "BenchmarkNoopReconcile"
)

// noopReconcile runs the Go benchmark of a reconcile that changes nothing.
func noopReconcile(ctx context.Context, _ options) ([]row, error) {
	say("measuring a reconcile without changes")
	root, err := testkit.ModuleRoot()
	if err != nil {
		return nil, err
	}
	test := exec.CommandContext(ctx, "go", "test", "-run=^$", "-bench=^"+noopName+"$", "-benchmem", "-count=3", noopPackage)
	test.Dir = root
	output, err := test.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("go test -bench in %s: %w\n%s", noopPackage, err, output)
	}
	rows := benchmarkRows(string(output))
	if len(rows) == 0 {
		return nil, fmt.Errorf("no %s in %s:\n%s", noopName, noopPackage, output)
	}
	return append([]row{heading("A reconcile without changes (" + noopName + ")")}, rows...), nil
}

// benchmarkRows parses the output of go test -bench. It returns a row for each unit
// with the minimum of all runs, because other load only makes a run slower. Units
// of calls are counts with a budget.
func benchmarkRows(output string) []row {
	least := map[string]string{}
	var units []string
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], noopName) {
			continue
		}
		for i := 2; i+1 < len(fields); i += 2 {
			value, unit := fields[i], fields[i+1]
			was, known := least[unit]
			if !known {
				units = append(units, unit)
			}
			if !known || number(value) < number(was) {
				least[unit] = value
			}
		}
	}
	rows := make([]row, 0, len(units))
	for _, unit := range units {
		if strings.HasSuffix(unit, "calls/op") {
			rows = append(rows, count(unit, int(math.Ceil(number(least[unit]))), 0, ""))
			continue
		}
		rows = append(rows, info(unit, least[unit], ""))
	}
	return rows
}

func number(text string) (value float64) {
	_, _ = fmt.Sscan(text, &value)
	return value
}
