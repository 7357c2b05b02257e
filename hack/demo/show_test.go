package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const vms = `{
	"columnDefinitions": [
		{"name": "Name", "priority": 0}, {"name": "State", "priority": 0}, {"name": "CPU%", "priority": 0},
		{"name": "Host", "priority": 1}, {"name": "VM ID", "priority": 0}, {"name": "Age", "priority": 0}
	],
	"rows": [
		{"cells": ["sample", "Running", 50, "host-1", "0f0e7a3c", "12s"]},
		{"cells": ["taboo", "Failed", null, null, null, "8s"]},
		{"cells": ["web", "Running", 7, "host-2", "11aa22bb", "3s"]}
	]
}`

func tables(t *testing.T, texts ...string) []metav1.Table {
	t.Helper()
	all := make([]metav1.Table, len(texts))
	for i, text := range texts {
		if err := json.Unmarshal([]byte(text), &all[i]); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestRenderFormatsTablesAsKubectl(t *testing.T) {
	for name, c := range map[string]struct {
		tables []metav1.Table
		err    error
		layout layout
		want   string
	}{
		"columns of the wide output and cells without a value: omitted and empty": {
			tables: tables(t, vms), want: `
NAME     STATE     CPU%   VM ID      AGE
sample   Running   50     0f0e7a3c   12s
taboo    Failed                      8s
web      Running   7      11aa22bb   3s
`,
		},
		"more rows than allowed: last line has their number": {
			tables: tables(t, vms), layout: layout{rows: 1, without: volatile}, want: `
NAME     STATE     VM ID
sample   Running   0f0e7a3c
… and 2 more
`,
		},
		"wide terminal: cells are complete": {
			tables: tables(t, strings.ReplaceAll(vms, "0f0e7a3c", "0f0e7a3c-8a54")), layout: layout{rows: 1, columns: 45}, want: `
NAME     STATE     CPU%   VM ID           AGE
sample   Running   50     0f0e7a3c-8a54   12s
… and 2 more
`,
		},
		"narrow terminal: long cells are truncated so that the last columns are visible": {
			tables: tables(t, strings.ReplaceAll(vms, "0f0e7a3c", "0f0e7a3c-8a54-4c0b")), layout: layout{columns: 48}, want: `
NAME     STATE     CPU%   VM ID       AGE
sample   Running   50     0f0e7a3c…   12s
taboo    Failed                       8s
web      Running   7      11aa22bb    3s
`,
		},
		"table without rows: the message of kubectl": {
			tables: tables(t, `{}`, `{"columnDefinitions": [{"name": "Name"}], "rows": [{"cells": ["default"]}]}`), want: `
No resources found

NAME
default
`,
		},
		"API server that does not respond: the error instead of tables": {
			err: errors.New("reading vms: connection refused"), want: "\nreading vms: connection refused\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := "\n" + render(c.tables, c.err, c.layout)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFitLimitsRowsToTheTerminal(t *testing.T) {
	two := tables(t, vms, `{"columnDefinitions": [{"name": "Name"}], "rows": [{"cells": ["default"]}]}`)
	for name, c := range map[string]struct {
		rows int
		want string
	}{
		"one line more than needed: all rows": {rows: 8, want: `
NAME     STATE     CPU%   VM ID      AGE
sample   Running   50     0f0e7a3c   12s
taboo    Failed                      8s
web      Running   7      11aa22bb   3s

NAME
default
`},
		"one line less: the longest table is cut": {rows: 7, want: `
NAME     STATE     CPU%   VM ID      AGE
sample   Running   50     0f0e7a3c   12s
… and 2 more

NAME
default
`},
		"terminal of one line: one row of each table": {rows: 1, want: `
NAME     STATE     CPU%   VM ID      AGE
sample   Running   50     0f0e7a3c   12s
… and 2 more

NAME
default
`},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, "\n"+fit(two, nil, c.rows, 80)); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDrawUpdatesATerminalInPlaceAndAFileOnChange(t *testing.T) {
	before, later := tables(t, vms), tables(t, strings.NewReplacer("12s", "13s", "50", "51").Replace(vms))
	changed := tables(t, strings.ReplaceAll(vms, `"Failed"`, `"Running"`))

	var terminal, file strings.Builder
	inPlace := screen{out: &terminal, size: func() (int, int) { return 24, 80 }}
	below := screen{out: &file, size: func() (int, int) { return 0, 0 }}
	for _, frame := range [][]metav1.Table{before, later, changed} {
		inPlace.draw(frame, nil)
		below.draw(frame, nil)
	}

	type drawn struct{ Frames, Redraws, Printed int }
	got := drawn{
		Frames:  strings.Count(terminal.String(), "NAME"),
		Redraws: strings.Count(terminal.String(), "\x1b[4A\r\x1b[J"),
		Printed: strings.Count(file.String(), "NAME"),
	}
	if diff := cmp.Diff(drawn{Frames: 3, Redraws: 2, Printed: 2}, got); diff != "" {
		t.Errorf("counts (-want +got):\n%s\n%q", diff, terminal.String())
	}
}
