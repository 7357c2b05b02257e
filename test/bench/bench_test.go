package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const auditSample = `{"verb":"create","userAgent":"bench","objectRef":{"resource":"vms","namespace":"bench","name":"ours0-00000"},"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-01-01T00:00:01.000000Z","stageTimestamp":"2026-01-01T00:00:01.500000Z"}
{"verb":"create","userAgent":"bench","objectRef":{"resource":"vms","namespace":"bench","name":"ours0-00001"},"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-01-01T00:00:01.100000Z","stageTimestamp":"2026-01-01T00:00:01.600000Z"}
{"verb":"patch","userAgent":"private-cloud-operator/dev","objectRef":{"resource":"vms","namespace":"bench","name":"ours0-00000"},"responseStatus":{"code":200}}
{"verb":"patch","userAgent":"private-cloud-operator/dev","objectRef":{"resource":"vms","namespace":"bench","name":"ours0-00000"},"responseStatus":{"code":409}}
{"verb":"patch","userAgent":"private-cloud-operator/dev","objectRef":{"resource":"vms","subresource":"status","namespace":"bench","name":"ours0-00000"},"responseStatus":{"code":200},"stageTimestamp":"2026-01-01T00:00:03.000000Z"}
{"verb":"create","userAgent":"private-cloud-operator/dev","objectRef":{"resource":"events","namespace":"bench","name":"ours0-00000.18"},"responseStatus":{"code":201},"stageTimestamp":"2026-01-01T00:00:09.000000Z"}
{"verb":"patch","userAgent":"private-cloud-operator/dev","objectRef":{"resource":"vms","namespace":"bench","name":"ours01-00000"},"responseStatus":{"code":200}}
{"verb":"update","userAgent":"manager/v0 (linux/amd64) kubernetes/x/leader-election","objectRef":{"resource":"leases","namespace":"bench","name":"operator"},"responseStatus":{"code":200}}
{"verb":"update","userAgent":"kube-apiserver/v1","objectRef":{"resource":"leases","namespace":"kube-system","name":"apiserver"},"responseStatus":{"code":200}}
`

func sampleEntries(t *testing.T) []entry {
	t.Helper()
	entries, err := decodeEntries([]byte(auditSample))
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestWritesAreHeldToTheBudgetByVMRefusedOnesIncluded(t *testing.T) {
	got := lifeWrites("case", "ours0", writesOf(sampleEntries(t), operator))

	want := row{
		name: "case", figure: "3", budget: "≤ 4", verdict: ok,
		detail: "patch vms 0.10, patch vms (answered 409) 0.10, patch vms/status 0.10; events beside: 0.10",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAWaveLastsFromTheFirstCreateReceivedToTheLastStatusAnswered(t *testing.T) {
	got := waveOf(sampleEntries(t), "ours0", operator)

	want := round{took: 2 * time.Second, writes: 4}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestWhatIsCountedAtRest(t *testing.T) {
	list := func(query string) call { return call{Method: "GET", Route: "/servers", Query: query} }
	whole := []call{list("limit=2"), list("limit=2&marker=a"), list("limit=2&marker=b")}
	calm := append(append([]call{list("marker=late")}, whole...), list("limit=2"))
	tests := []struct {
		name    string
		entries []entry
		calls   []call
		want    []string
	}{
		{name: "the lease is no write, and listings cut off at either end do not count", calls: calm,
			want: []string{"0 ≤ 0 ok", "0 ≤ 0 ok", "3 ≤ 3 ok"}},
		{name: "whoever is not known to be somebody else is the operator", entries: []entry{{Verb: "patch", UserAgent: "unheard/of"}}, calls: calm,
			want: []string{"1 ≤ 0 OVER", "0 ≤ 0 ok", "3 ≤ 3 ok"}},
		{name: "looking at one server is a call too many", calls: append([]call{{Method: "GET", Route: "/servers/{id}"}}, calm...),
			want: []string{"0 ≤ 0 ok", "1 ≤ 0 OVER", "3 ≤ 3 ok"}},
		{name: "a page too many", calls: append(append(whole[:3:3], list("marker=c")), list("limit=2")),
			want: []string{"0 ≤ 0 ok", "0 ≤ 0 ok", "4 ≤ 3 OVER"}},
	}
	leases := sampleEntries(t)[7:]
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, r := range append(idleRows(append(tt.entries, leases...), tt.calls), listingRow(tt.calls, 2500)) {
				got = append(got, strings.Join([]string{r.figure, r.budget, string(r.verdict)}, " "))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBenchmarkRowsKeepTheLeastOfSeveralRuns(t *testing.T) {
	got := benchmarkRows(`goos: linux
BenchmarkNoopReconcile-2   	   10000	     10500 ns/op	    4096 B/op	      41 allocs/op
BenchmarkNoopReconcile-2   	   12000	      9800 ns/op	         0.5 apicalls/op	    4100 B/op	      41 allocs/op
PASS
`)

	want := []row{
		{name: "ns/op", figure: "9800"}, {name: "B/op", figure: "4096"}, {name: "allocs/op", figure: "41"},
		{name: "apicalls/op", figure: "1", budget: "≤ 0", verdict: over},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheTableShowsBudgetsAndFailsForCountsAlone(t *testing.T) {
	results := table{
		heading("Writes"), count("sync", 3, 4, "patch vms 2"), count("async", 5, 4, ""),
		heading("Rates"), info("operator", "100 VM/s", ""), aim("share", "60 %", "≥ 70 %", false, ""),
	}

	want := `Writes
  sync      3         ≤ 4     ok      patch vms 2
  async     5         ≤ 4     OVER

Rates
  operator  100 VM/s
  share     60 %      ≥ 70 %  missed
`
	if diff := cmp.Diff(want, results.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"async"}, results.overBudget()); diff != "" {
		t.Errorf("over budget (-want +got):\n%s", diff)
	}
}

func TestTheMetricsPageIsSummedUpOverItsLabels(t *testing.T) {
	page := []byte("# HELP x y\nx_total{a=\"1\"} 2\nx_total{a=\"2\"} 3.5e+00\nx_total_other 9\n")

	got, err := sum(page, "x_total{")
	if err != nil || got != 5.5 {
		t.Errorf("got %v %v, want 5.5", got, err)
	}
	if _, err := sum(page, "y_total"); err == nil {
		t.Error("a metric that is not there is summed up")
	}
}
