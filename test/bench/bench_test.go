package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	pcapi "github.com/privatecloud/operator/api/v1alpha1"
	"github.com/privatecloud/operator/internal/inventory"
	"github.com/privatecloud/operator/mockcloud"
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

func TestLifeWritesCountsFailedWritesPerVM(t *testing.T) {
	got := lifeWrites(life{name: "case", writes: mostWrites}, "ours0", writesOf(sampleEntries(t), operator))

	want := row{
		name: "case", figure: "3", budget: "≤ 4", outcome: ok,
		detail: "patch vms 0.10, patch vms (answered 409) 0.10, patch vms/status 0.10; events: 0.10",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWaveOfMeasuresFromFirstCreateToLastStatus(t *testing.T) {
	got := waveOf(sampleEntries(t), "ours0", operator)

	want := round{took: 2 * time.Second, writes: 4}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestGroupOfMeasuresFromScalingToTheLastMember(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
	write := func(who agent, verb, resource, subresource, name string, second, code int) entry {
		e := entry{Verb: verb, UserAgent: string(who), Received: at(second), Answered: at(second)}
		e.ObjectRef.Resource, e.ObjectRef.Subresource, e.ObjectRef.Name, e.ResponseStatus.Code = resource, subresource, name, code
		return e
	}
	up := []entry{
		write(bench, "patch", "vmgroups", "", "group0", 1, 200),
		write(operator, "create", "vms", "", "group0-a", 2, 201),
		write(operator, "patch", "vms", "", "group0-a", 3, 200),
		write(operator, "patch", "vms", "status", "group0-a", 4, 200),
		write(operator, "patch", "vms", "status", "other-a", 5, 200),
		write(operator, "patch", "vmgroups", "status", "group0", 6, 200),
		write(operator, "create", "events", "", "group0-a.18", 7, 201),
	}
	down := []entry{
		write(bench, "patch", "vmgroups", "", "group0", 10, 200),
		write(operator, "delete", "vms", "", "group0-a", 11, 200),
		write(operator, "patch", "vms", "", "group0-a", 17, 200),
		write(operator, "patch", "vms", "", "group0-a", 18, 404),
	}

	want := groupRound{grown: 3 * time.Second, gone: 8 * time.Second, writes: 4, ofGroup: 1, kinds: map[string]int{
		"create vms": 1, "patch vms": 2, "patch vms/status": 1, "delete vms": 1, "patch vms (answered 404)": 1,
	}}
	if diff := cmp.Diff(want, groupOf(up, down, "group0"), cmp.AllowUnexported(groupRound{}, usage{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRemovalOfMeasuresFromFirstDeleteToLastRelease(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC) }
	write := func(who agent, verb, resource, name string, second int) entry {
		e := entry{Verb: verb, UserAgent: string(who), Received: at(second), Answered: at(second)}
		e.ObjectRef.Resource, e.ObjectRef.Name = resource, name
		return e
	}
	got := removalOf([]entry{
		write(bare, "patch", "vms", "loop0-a", 1),
		write(bench, "delete", "vms", "other-a", 2),
		write(bench, "delete", "vms", "loop0-a", 3),
		write(bench, "delete", "vms", "loop0-b", 4),
		write(bare, "patch", "vms", "loop0-b", 6),
		write(bare, "patch", "vms", "loop0-a", 7),
		write(bare, "create", "events", "loop0-a.18", 8),
		write(bare, "patch", "vms", "other-a", 9),
	}, "loop0")

	if want := 4 * time.Second; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBareLoopWritesEachVMOnceForEachTask(t *testing.T) {
	now := metav1.Now()
	object := metav1.ObjectMeta{Finalizers: []string{"f"}}
	alive, deleted, released := &pcapi.VM{ObjectMeta: object}, &pcapi.VM{ObjectMeta: object}, &pcapi.VM{}
	deleted.DeletionTimestamp, released.DeletionTimestamp = &now, &now
	for name, test := range map[string]struct {
		event             watch.EventType
		vm                *pcapi.VM
		isNew             bool
		making, releasing bool
	}{
		"created":                {watch.Added, alive, true, true, false},
		"there already":          {watch.Added, alive, false, false, false},
		"changed":                {watch.Modified, alive, true, false, false},
		"deleted with finalizer": {watch.Modified, deleted, false, false, true},
		"released":               {watch.Modified, released, false, false, false},
		"gone":                   {watch.Deleted, deleted, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			loop := &bareLoop{}
			making, releasing := loop.making().due(test.event, test.vm, test.isNew), loop.releasing().due(test.event, test.vm, test.isNew)
			if making != test.making || releasing != test.releasing {
				t.Errorf("making %t, releasing %t; want %t and %t", making, releasing, test.making, test.releasing)
			}
		})
	}
}

func TestMostReturnsTheMaximumOfAllMembers(t *testing.T) {
	create := func(id, uid string) mockcloud.LedgerEntry {
		return mockcloud.LedgerEntry{Op: mockcloud.OpCreate, ServerID: id, Labels: map[string]string{inventory.UIDLabel: uid}}
	}
	gone := func(id string) mockcloud.LedgerEntry {
		return mockcloud.LedgerEntry{Op: mockcloud.OpDelete, ServerID: id, Final: true}
	}
	for name, test := range map[string]struct {
		ledger         []mockcloud.LedgerEntry
		created, alive int
	}{
		"one each":             {[]mockcloud.LedgerEntry{create("1", "a"), create("2", "b"), gone("1"), gone("2")}, 1, 1},
		"one after the other":  {[]mockcloud.LedgerEntry{create("1", "a"), gone("1"), create("2", "a")}, 2, 1},
		"two at the same time": {[]mockcloud.LedgerEntry{create("1", "a"), create("2", "a"), gone("1")}, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			if created, alive := most(test.ledger); created != test.created || alive != test.alive {
				t.Errorf("%d created, %d alive; want %d and %d", created, alive, test.created, test.alive)
			}
		})
	}
}

func TestPercentileReturnsOneOfTheValues(t *testing.T) {
	var values []time.Duration
	for i := range 150 {
		values = append(values, time.Duration(150-i))
	}
	for name, test := range map[string]struct {
		values  []time.Duration
		percent int
		want    time.Duration
	}{
		"half of them": {values, 50, 75}, "99 percent": {values, 99, 149}, "all": {values, 100, 150},
		"half of one value": {values[:1], 50, 150},
	} {
		t.Run(name, func(t *testing.T) {
			if got := percentile(test.values, test.percent); got != test.want {
				t.Errorf("p%d: %d, want %d", test.percent, got, test.want)
			}
		})
	}
}

func TestIdleRowsAndListingRow(t *testing.T) {
	list := func(query string) call { return call{Method: "GET", Route: "/servers", Query: query} }
	whole := []call{list("limit=2"), list("limit=2&marker=a"), list("limit=2&marker=b")}
	idle := append(append([]call{list("marker=late")}, whole...), list("limit=2"))
	tests := []struct {
		name    string
		entries []entry
		calls   []call
		want    []string
	}{
		{name: "writes of the lease and incomplete listings: not counted", calls: idle,
			want: []string{"0 ≤ 0 ok", "0 ≤ 0 ok", "3 ≤ 3 ok"}},
		{name: "unknown User-Agent: counts as the operator", entries: []entry{{Verb: "patch", UserAgent: "unheard/of"}}, calls: idle,
			want: []string{"1 ≤ 0 OVER", "0 ≤ 0 ok", "3 ≤ 3 ok"}},
		{name: "GET of one server: one call over the budget", calls: append([]call{{Method: "GET", Route: "/servers/{id}"}}, idle...),
			want: []string{"0 ≤ 0 ok", "1 ≤ 0 OVER", "3 ≤ 3 ok"}},
		{name: "additional page: over the budget", calls: append(append(whole[:3:3], list("marker=c")), list("limit=2")),
			want: []string{"0 ≤ 0 ok", "0 ≤ 0 ok", "4 ≤ 3 OVER"}},
	}
	leases := sampleEntries(t)[7:]
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, r := range append(idleRows(append(tt.entries, leases...), tt.calls), listingRow(tt.calls, 2500)) {
				got = append(got, strings.Join([]string{r.figure, r.budget, string(r.outcome)}, " "))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBenchmarkRowsReturnTheMinimumOfAllRuns(t *testing.T) {
	got := benchmarkRows(`goos: linux
BenchmarkNoopReconcile-2   	   10000	     10500 ns/op	    4096 B/op	      41 allocs/op
BenchmarkNoopReconcile-2   	   12000	      9800 ns/op	         0.5 apicalls/op	    4100 B/op	      41 allocs/op
PASS
`)

	want := []row{
		{name: "ns/op", figure: "9800"}, {name: "B/op", figure: "4096"}, {name: "allocs/op", figure: "41"},
		{name: "apicalls/op", figure: "1", budget: "≤ 0", outcome: over},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTableShowsBudgetsAndOverBudgetReturnsCountsOnly(t *testing.T) {
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

func TestSumAddsAllLabels(t *testing.T) {
	page := []byte("# HELP x y\nx_total{a=\"1\"} 2\nx_total{a=\"2\"} 3.5e+00\nx_total_other 9\n")

	got, err := sum(page, "x_total{")
	if err != nil || got != 5.5 {
		t.Errorf("got %v %v, want 5.5", got, err)
	}
	if _, err := sum(page, "y_total"); err == nil {
		t.Error("unknown metric: got no error")
	}
}
