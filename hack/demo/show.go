package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
)

const (
	refresh = time.Second
	// tableFormat is the media type of the tables that kubectl get prints.
	tableFormat = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

// volatile columns change all the time: output that is not a terminal ignores
// these changes.
var volatile = []string{"Age", "CPU%"}

var shown = []string{
	"/apis/" + pcapi.GroupVersion.String() + "/clouds",
	"/apis/" + pcapi.GroupVersion.String() + "/namespaces/default/networks",
	"/apis/" + pcapi.GroupVersion.String() + "/namespaces/default/vms",
	"/apis/" + pcapi.GroupVersion.String() + "/namespaces/default/vmgroups",
	"/apis/" + pcapi.GroupVersion.String() + "/namespaces/default/gpuinfos",
}

// show prints the tables until ctx ends: on a terminal it updates them in place,
// otherwise it prints them again when they change.
func (s *stack) show(ctx context.Context) error {
	api, err := discovery.NewDiscoveryClientForConfig(s.api.Config)
	if err != nil {
		return fmt.Errorf("creating a client for tables: %w", err)
	}
	screen := &screen{out: os.Stdout, size: func() (int, int) { return terminalSize(os.Stdout) }}
	for tick := time.NewTicker(refresh); ; {
		screen.draw(fetch(ctx, api.RESTClient()))
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// fetch returns the tables that kubectl get prints.
func fetch(ctx context.Context, api rest.Interface) ([]metav1.Table, error) {
	tables := make([]metav1.Table, len(shown))
	for i, path := range shown {
		data, err := api.Get().AbsPath(path).SetHeader("Accept", tableFormat).Timeout(5 * refresh).DoRaw(ctx)
		if err == nil {
			err = json.Unmarshal(data, &tables[i])
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return tables, nil
}

// screen draws tables.
type screen struct {
	out io.Writer
	// size returns the rows and columns of the terminal, and 0 if out is not one.
	size func() (rows, columns int)
	// height is the number of lines drawn last.
	height int
	// stable is the text printed last, without the volatile columns.
	stable string
}

func (s *screen) draw(tables []metav1.Table, err error) {
	if rows, columns := s.size(); columns > 0 {
		text := fit(tables, err, rows, columns)
		// Line wrapping is off, because wrapped lines would make height wrong.
		fmt.Fprintf(s.out, "%s\x1b[J\x1b[?7l%s\x1b[?7h", cursorUp(s.height), text)
		s.height = strings.Count(text, "\n")
		return
	}
	stable := render(tables, err, layout{without: volatile})
	if stable == s.stable {
		return
	}
	s.stable = stable
	fmt.Fprintf(s.out, "%s\n%s\n", time.Now().Format(time.TimeOnly), render(tables, err, layout{}))
}

// cursorUp returns the control sequence that moves the cursor up.
func cursorUp(lines int) string {
	if lines == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r", lines)
}

// layout limits the size of tables. Zero is no limit.
type layout struct {
	// rows is the maximum number of rows of each table; a last line has the number
	// of the others.
	rows int
	// columns is the width of the terminal: cells of wider tables are truncated.
	columns int
	// without are the names of the columns to omit.
	without []string
}

// truncated is the maximum length of a cell in a table that is too wide.
const truncated = 9

// render formats tables as kubectl does.
func render(tables []metav1.Table, err error, l layout) string {
	if err != nil {
		return err.Error() + "\n"
	}
	texts := make([]string, 0, len(tables))
	for _, table := range tables {
		text := renderTable(table, l, 0)
		if l.columns > 0 && widest(text) > l.columns {
			text = renderTable(table, l, truncated)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n")
}

// fit renders tables with as many rows as fit on the terminal, because lines that
// have scrolled off cannot be updated.
func fit(tables []metav1.Table, err error, rows, columns int) string {
	text := render(tables, err, layout{columns: columns})
	for most := rows; most > 0 && strings.Count(text, "\n") >= rows; most-- {
		text = render(tables, err, layout{rows: most, columns: columns})
	}
	return text
}

func renderTable(table metav1.Table, l layout, longest int) string {
	if len(table.Rows) == 0 {
		return "No resources found\n"
	}
	var text strings.Builder
	var columns []int
	var head []string
	for c, column := range table.ColumnDefinitions {
		if column.Priority == 0 && !slices.Contains(l.without, column.Name) {
			columns, head = append(columns, c), append(head, strings.ToUpper(column.Name))
		}
	}
	rows := table.Rows
	if l.rows > 0 {
		rows = rows[:min(l.rows, len(rows))]
	}
	lines := tabwriter.NewWriter(&text, 6, 4, 3, ' ', 0)
	fmt.Fprintln(lines, strings.Join(head, "\t"))
	for _, row := range rows {
		fmt.Fprintln(lines, strings.Join(cells(row, columns, longest), "\t"))
	}
	_ = lines.Flush()
	if more := len(table.Rows) - len(rows); more > 0 {
		fmt.Fprintf(&text, "… and %d more\n", more)
	}
	return text.String()
}

func cells(row metav1.TableRow, columns []int, longest int) []string {
	texts := make([]string, 0, len(columns))
	for _, c := range columns {
		text := ""
		if c < len(row.Cells) && row.Cells[c] != nil {
			text, _, _ = strings.Cut(fmt.Sprint(row.Cells[c]), "\n")
		}
		if runes := []rune(text); longest > 0 && len(runes) > longest {
			text = string(runes[:longest-1]) + "…"
		}
		texts = append(texts, text)
	}
	return texts
}

func widest(text string) int {
	most := 0
	for line := range strings.Lines(text) {
		most = max(most, utf8.RuneCountInString(strings.TrimRight(line, "\n")))
	}
	return most
}
