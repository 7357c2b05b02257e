package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// verdict is how a figure stands to its budget.
type verdict string

const (
	// none: there is no budget.
	none verdict = ""
	ok   verdict = "ok"
	// over: a count that depends on nothing but the code is over its budget.
	over verdict = "OVER"
	// missed: a figure that depends on the machine missed its aim this time.
	missed verdict = "missed"
)

// row is a line of the table: a figure, or a heading where there is no figure.
type row struct {
	name, figure, budget string
	verdict              verdict
	detail               string
}

func heading(text string) row { return row{name: text} }

func info(name, figure, detail string) row { return row{name: name, figure: figure, detail: detail} }

// count is a figure that must not exceed its budget.
func count(name string, figure, budget int, detail string) row {
	r := row{name: name, figure: fmt.Sprint(figure), budget: fmt.Sprintf("≤ %d", budget), verdict: ok, detail: detail}
	if figure > budget {
		r.verdict = over
	}
	return r
}

// aim is a figure that should reach its budget, on a machine with nothing else to do.
func aim(name, figure, budget string, reached bool, detail string) row {
	r := row{name: name, figure: figure, budget: budget, verdict: ok, detail: detail}
	if !reached {
		r.verdict = missed
	}
	return r
}

type table []row

func (t table) String() string {
	var text strings.Builder
	lines := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for i, r := range t {
		if r.figure != "" {
			fmt.Fprintf(lines, "  %s\t%s\t%s\t%s\t%s\n", r.name, r.figure, r.budget, r.verdict, r.detail)
			continue
		}
		if i > 0 {
			fmt.Fprintln(lines, "\t\t\t\t")
		}
		fmt.Fprintf(lines, "%s\t\t\t\t\n", r.name)
	}
	_ = lines.Flush()
	return trimLines(text.String())
}

// trimLines removes the spaces that fill the columns of a line up to its end.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// overBudget names the counts that are.
func (t table) overBudget() []string {
	var names []string
	for _, r := range t {
		if r.verdict == over {
			names = append(names, r.name)
		}
	}
	return names
}
