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

	"github.com/privatecloud/operator/api/v1alpha1"
)

const (
	refresh = time.Second
	// asTable has the API server render the columns that kubectl get prints.
	asTable = "application/json;as=Table;v=v1;g=meta.k8s.io"
)

// volatile columns change by themselves and are no news where every change is printed.
var volatile = []string{"Age", "CPU%"}

var shown = []string{
	"/apis/" + v1alpha1.GroupVersion.String() + "/clouds",
	"/apis/" + v1alpha1.GroupVersion.String() + "/namespaces/default/networks",
	"/apis/" + v1alpha1.GroupVersion.String() + "/namespaces/default/vms",
	"/apis/" + v1alpha1.GroupVersion.String() + "/namespaces/default/vmgroups",
	"/apis/" + v1alpha1.GroupVersion.String() + "/namespaces/default/gpuinfos",
}

// show keeps the tables up to date until ctx ends: in place on a terminal,
// else one below the other as something changes.
func (s *stack) show(ctx context.Context) error {
	api, err := discovery.NewDiscoveryClientForConfig(s.api.Config)
	if err != nil {
		return fmt.Errorf("making a client for tables: %w", err)
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

// fetch returns the tables that kubectl get would print, or an error in place of them.
func fetch(ctx context.Context, api rest.Interface) ([]metav1.Table, error) {
	tables := make([]metav1.Table, len(shown))
	for i, path := range shown {
		data, err := api.Get().AbsPath(path).SetHeader("Accept", asTable).Timeout(5 * refresh).DoRaw(ctx)
		if err == nil {
			err = json.Unmarshal(data, &tables[i])
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return tables, nil
}

// screen is where tables are drawn.
type screen struct {
	out io.Writer
	// size returns the rows and columns of a terminal, 0 for what is none.
	size func() (rows, columns int)
	// height is that of the last drawing, and news what it said but for the volatile columns.
	height int
	news   string
}

func (s *screen) draw(tables []metav1.Table, err error) {
	if rows, columns := s.size(); columns > 0 {
		text := fit(tables, err, rows, columns)
		// The terminal cuts lines off that are too long for it: wrapped, they would spoil the count.
		fmt.Fprintf(s.out, "%s\x1b[J\x1b[?7l%s\x1b[?7h", up(s.height), text)
		s.height = strings.Count(text, "\n")
		return
	}
	news := render(tables, err, layout{without: volatile})
	if news == s.news {
		return
	}
	s.news = news
	fmt.Fprintf(s.out, "%s\n%s\n", time.Now().Format(time.TimeOnly), render(tables, err, layout{}))
}

func up(lines int) string {
	if lines == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r", lines)
}

// layout bounds what is drawn. Zero is no bound.
type layout struct {
	// rows of each table; more are counted.
	rows int
	// columns of the terminal: in a table that is wider, long cells are shortened.
	columns int
	// without are the names of columns to leave out.
	without []string
}

// short is how many characters a cell has at most that is shortened.
const short = 9

// render lays tables out as kubectl does.
func render(tables []metav1.Table, err error, l layout) string {
	if err != nil {
		return err.Error() + "\n"
	}
	texts := make([]string, 0, len(tables))
	for _, table := range tables {
		text := lay(table, l, 0)
		if l.columns > 0 && widest(text) > l.columns {
			text = lay(table, l, short)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n")
}

// fit renders tables with as many rows of each as a terminal has room for: what
// scrolled off could not be drawn again.
func fit(tables []metav1.Table, err error, rows, columns int) string {
	text := render(tables, err, layout{columns: columns})
	for most := rows; most > 0 && strings.Count(text, "\n") >= rows; most-- {
		text = render(tables, err, layout{rows: most, columns: columns})
	}
	return text
}

func lay(table metav1.Table, l layout, longest int) string {
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
