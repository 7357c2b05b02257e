package plugin

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
)

// Unknown is shown in tables for what is not known.
const Unknown = "<unknown>"

// Output is how data is printed: as a table, or as JSON.
type Output struct{ Format string }

// AddFlag adds the flag --output.
func (o *Output) AddFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.Format, "output", "o", "", "print JSON instead of a table: json")
	cobra.CheckErr(cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"json"}, cobra.ShellCompDirectiveNoFileComp)))
}

// Print writes data as JSON, or calls table for people.
func (o *Output) Print(out io.Writer, data any, table func(io.Writer) error) error {
	switch o.Format {
	case "":
		return table(out)
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(data); err != nil {
			return fmt.Errorf("write JSON: %w", err)
		}
		return nil
	}
	return fmt.Errorf("--output is %q: set json, or leave it out for a table", o.Format)
}

// Plain returns a text on one line, without what a terminal does not print: names come from
// clouds, which could send sequences that control the terminal.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// Table writes rows in columns as kubectl does, in plain text. The first row is the heading.
func Table(out io.Writer, rows ...[]string) error {
	columns := printers.GetNewTabWriter(out)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i := range row {
			cells[i] = Plain(row[i])
		}
		if _, err := fmt.Fprintln(columns, strings.Join(cells, "\t")); err != nil {
			return fmt.Errorf("write the table: %w", err)
		}
	}
	if err := columns.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}
