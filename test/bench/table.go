package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
)

// outcome is the result of comparing a figure to its budget.
type outcome string

const (
	// none means that there is no budget.
	none outcome = ""
	ok   outcome = "ok"
	// over means that a count, which depends on the code only, is over its budget.
	over outcome = "OVER"
	// missed means that a figure, which depends on the machine, missed its goal.
	missed outcome = "missed"
)

// row is a line of the table: a figure, or a heading if there is no figure.
type row struct {
	name, figure, budget string
	outcome              outcome
	detail               string
}

func heading(text string) row { return row{name: text} }

func info(name, figure, detail string) row { return row{name: name, figure: figure, detail: detail} }

// count is a figure that must not exceed its budget.
func count(name string, figure, budget int, detail string) row {
	r := row{name: name, figure: fmt.Sprint(figure), budget: fmt.Sprintf("≤ %d", budget), outcome: ok, detail: detail}
	if figure > budget {
		r.outcome = over
	}
	return r
}

// aim is a figure that should reach its goal on a machine without other load.
func aim(name, figure, budget string, reached bool, detail string) row {
	r := row{name: name, figure: figure, budget: budget, outcome: ok, detail: detail}
	if !reached {
		r.outcome = missed
	}
	return r
}

type table []row

func (t table) String() string {
	var text strings.Builder
	lines := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for i, r := range t {
		if r.figure != "" {
			fmt.Fprintf(lines, "  %s\t%s\t%s\t%s\t%s\n", r.name, r.figure, r.budget, r.outcome, r.detail)
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

// trimLines removes trailing spaces.
func trimLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// overBudget returns the names of the counts that are over their budget.
func (t table) overBudget() []string {
	var names []string
	for _, r := range t {
		if r.outcome == over {
			names = append(names, r.name)
		}
	}
	return names
}
