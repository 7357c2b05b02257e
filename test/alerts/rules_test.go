package alerts_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/privatecloud/operator/internal/testkit"
)

const (
	monitoring = "../../config/overlays/monitoring/"
	// factor is how much shorter the times of the rules are in the test.
	factor = 100
)

// rule is an alert.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type group struct {
	Name  string `json:"name"`
	Rules []rule `json:"rules"`
}

// groups are the contents of a file of rules.
type groups struct {
	Groups []group `json:"groups"`
}

// readRules returns the alerts that are installed.
func readRules(t *testkit.T) groups {
	t.Helper()
	var manifest struct {
		Spec groups `json:"spec"`
	}
	readYAML(t, "rules.yaml", &manifest)
	t.Expect(manifest.Spec.Groups).NotTo(BeEmpty())
	return manifest.Spec
}

func readYAML(t *testkit.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, file))
	t.Expect(err).NotTo(HaveOccurred())
	t.Expect(yaml.Unmarshal(text, into)).To(Succeed())
}

// honorLabels is the setting of the ServiceMonitor.
func honorLabels(t *testkit.T) bool {
	t.Helper()
	var monitor struct {
		Spec struct {
			Endpoints []struct {
				HonorLabels bool `json:"honorLabels"`
			} `json:"endpoints"`
		} `json:"spec"`
	}
	readYAML(t, "service_monitor.yaml", &monitor)
	t.Expect(monitor.Spec.Endpoints).To(HaveLen(1))
	return monitor.Spec.Endpoints[0].HonorLabels
}

var (
	window  = regexp.MustCompile(`\[(\w+)\]`)
	seconds = regexp.MustCompile(`([>-]) (\d+)\s*$`)
)

// shorter returns the rule with shorter times: windows, the time after for, and a number
// of at least 60 at the end that is compared or subtracted, which is a number of seconds.
func (r rule) shorter() rule {
	r.Expr = window.ReplaceAllStringFunc(r.Expr, func(text string) string { return "[" + shorter(text[1:len(text)-1]) + "]" })
	r.Expr = seconds.ReplaceAllStringFunc(r.Expr, func(text string) string {
		const least = 60
		parts := seconds.FindStringSubmatch(text)
		n, err := strconv.ParseFloat(parts[2], 64)
		if err != nil || n < least {
			return text
		}
		return fmt.Sprintf("%s %v", parts[1], n/factor)
	})
	if r.For != "" {
		r.For = shorter(r.For)
	}
	return r
}

// shorter returns a shorter duration, in the units of Prometheus.
func shorter(text string) string {
	d, err := time.ParseDuration(text)
	if err != nil {
		return text + " is no duration" // Prometheus refuses it
	}
	return fmt.Sprintf("%dms", d.Milliseconds()/factor)
}

func TestTimesOfARuleAreShortened(t *testing.T) {
	for name, tc := range map[string]struct{ rule, want rule }{
		"the time after for":                 {rule{Expr: "up == 0", For: "1h"}, rule{Expr: "up == 0", For: "36000ms"}},
		"windows":                            {rule{Expr: "rate(a[5m]) / rate(b[10m])"}, rule{Expr: "rate(a[3000ms]) / rate(b[6000ms])"}},
		"a comparison with seconds":          {rule{Expr: "time() - a > 600\n"}, rule{Expr: "time() - a > 6"}},
		"seconds that are subtracted":        {rule{Expr: "a > time() - 300"}, rule{Expr: "a > time() - 3"}},
		"no comparison with a smaller value": {rule{Expr: "a > 0.1"}, rule{Expr: "a > 0.1"}},
		"no comparison with a small number":  {rule{Expr: "a > 0"}, rule{Expr: "a > 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.rule.shorter()); diff != "" {
				t.Errorf("rule (-want +got):\n%s", diff)
			}
		})
	}
}

// shortened returns the rules as a file for Prometheus.
func (g groups) shortened(t *testkit.T) []byte {
	t.Helper()
	for _, group := range g.Groups {
		for i := range group.Rules {
			group.Rules[i] = group.Rules[i].shorter()
		}
	}
	text, err := yaml.Marshal(g)
	t.Expect(err).NotTo(HaveOccurred())
	return text
}

// alerts returns the names of the alerts, sorted.
func (g groups) alerts() []string {
	names := map[string]bool{}
	for _, group := range g.Groups {
		for _, rule := range group.Rules {
			names[rule.Alert] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// queriesOf returns the queries of a dashboard, by panel. Its variables select everything.
func queriesOf(t *testkit.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, file))
	t.Expect(err).NotTo(HaveOccurred())
	var dashboard struct {
		Templating struct{ List []struct{ Name, Type string } }
		Panels     []struct {
			Title   string
			Targets []struct{ RefID, Expr string }
		}
	}
	t.Expect(json.Unmarshal(text, &dashboard)).To(Succeed())
	queries := map[string]string{}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			query := target.Expr
			for _, variable := range dashboard.Templating.List {
				query = strings.ReplaceAll(query, "$"+variable.Name, ".*")
			}
			t.Expect(query).NotTo(ContainSubstring("$"), "a variable that the dashboard does not have")
			queries[file+", "+panel.Title+", "+target.RefID] = query
		}
	}
	t.Expect(queries).NotTo(BeEmpty())
	return queries
}
