package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/privatecloud/operator/mockcloud"
)

func TestStraysCountsServersMadeTwiceAndLeft(t *testing.T) {
	entry := func(op mockcloud.Op, id, name string, final bool) mockcloud.LedgerEntry {
		return mockcloud.LedgerEntry{Op: op, ServerID: id, Name: name, Final: final}
	}
	for name, test := range map[string]struct {
		ledger      []mockcloud.LedgerEntry
		twice, left int
	}{
		"one each, deleted at once": {[]mockcloud.LedgerEntry{
			entry(mockcloud.OpCreate, "1", "a", false), entry(mockcloud.OpCreate, "2", "b", false),
			entry(mockcloud.OpDelete, "1", "a", true), entry(mockcloud.OpDelete, "2", "b", true)}, 0, 0},
		"a slow deletion that did not end: left": {[]mockcloud.LedgerEntry{
			entry(mockcloud.OpCreate, "1", "a", false), entry(mockcloud.OpDelete, "1", "a", false)}, 0, 1},
		"a slow deletion that ended": {[]mockcloud.LedgerEntry{
			entry(mockcloud.OpCreate, "1", "a", false), entry(mockcloud.OpDelete, "1", "a", false), entry(mockcloud.OpGone, "1", "a", false)}, 0, 0},
		"a second server of a name, the first is left": {[]mockcloud.LedgerEntry{
			entry(mockcloud.OpCreate, "1", "a", false), entry(mockcloud.OpCreate, "2", "a", false), entry(mockcloud.OpDelete, "2", "a", true)}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if twice, left := strays(test.ledger); twice != test.twice || left != test.left {
				t.Errorf("%d made twice, %d left; want %d and %d", twice, left, test.twice, test.left)
			}
		})
	}
}

func figures(rows []row) []string {
	var texts []string
	for _, r := range rows {
		texts = append(texts, strings.TrimSpace(strings.Join([]string{r.name, r.figure, string(r.outcome)}, "|")))
	}
	return texts
}

func TestSpeedRowsCompareTheMedianToThatOfTheOperator(t *testing.T) {
	present := []peer{&operatorPeer{}, &tofuPeer{}}
	took := func(seconds ...int) (runs []peerRun) {
		for _, s := range seconds {
			runs = append(runs, peerRun{took: time.Duration(s) * time.Second})
		}
		return runs
	}
	for name, test := range map[string]struct {
		tofu []peerRun
		want []string
	}{
		"three times as long: ok":      {took(1, 6, 60), []string{"10 VMs created at once, until all are ready||", "this operator|2.0 s|", tofuTitle + "|6.0 s|", "times as long as the operator|3.0|ok"}},
		"twice as long: missed, shown": {took(4), []string{"10 VMs created at once, until all are ready||", "this operator|2.0 s|", tofuTitle + "|4.0 s|", "times as long as the operator|2.0|missed"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := figures(speedRows(10, present, [][]peerRun{took(1, 2, 9), test.tofu}))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRestRowsCompareTheCallsOfOneLook(t *testing.T) {
	present := []peer{&operatorPeer{}, &seedPeer{}, &tofuPeer{}}
	got := figures(restRows(100, present, [][]peerRun{{{looked: 1}}, {{looked: 99}}, {{looked: 1}, {looked: 200}}}))

	want := []string{"100 VMs at rest: cloud calls to look at all of them once||", "this operator|1|",
		(&seedPeer{}).title() + "|99|", "times as many as the operator|99|missed", tofuTitle + "|200|", "times as many as the operator|200|ok"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLossRowHasAnAimForTheOperatorOnly(t *testing.T) {
	for name, test := range map[string]struct {
		peer peer
		loss loss
		want outcome
	}{
		"operator, nothing lost: ok":            {&operatorPeer{}, loss{}, ok},
		"operator, one server is left: missed":  {&operatorPeer{}, loss{left: 1}, missed},
		"operator, one VM is not ready: missed": {&operatorPeer{}, loss{unready: 1}, missed},
		"another peer: no aim":                  {&seedPeer{}, loss{twice: 8}, none},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.loss.row(test.peer).outcome; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestPeersWithoutTheirProgramAreNamed(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "tofu")
	present, rows := options{tofu: missing, provider: missing}.peers()

	if len(present) != 2 {
		t.Errorf("%d peers are present, want the operator and the client-go controller", len(present))
	}
	want := []string{"Not measured||", tofuTitle + "|-|", "Crossplane with provider-http|-|", "metacontroller with a hook|-|"}
	if diff := cmp.Diff(want, figures(rows)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWritesOfTheSeedControllerAreNotThoseOfTheOperator(t *testing.T) {
	entries := []entry{{Verb: "update", UserAgent: "seed-controller"}}

	if got := len(writesOf(entries, operator)); got != 0 {
		t.Errorf("%d writes of the operator, want 0", got)
	}
	if got := len(writesOf(entries, seed)); got != 1 {
		t.Errorf("%d writes of the seed controller, want 1", got)
	}
}

func TestResidentInReadsBytes(t *testing.T) {
	for name, test := range map[string]struct {
		status string
		want   int64
	}{
		"with VmRSS":           {"Name:\tx\nVmHWM:\t  9 kB\nVmRSS:\t    2048 kB\nThreads:\t1\n", 2 << 20},
		"a zombie has no line": {"Name:\tx\nState:\tZ\n", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := residentIn(test.status); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
