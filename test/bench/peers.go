package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/privatecloud/operator/mockcloud"
)

const (
	// aimedSpeed and aimedReads are the goals: how many times as long another peer takes as
	// the operator, and how many times as many calls it sends to look at all servers.
	aimedSpeed, aimedReads = 3, 100
	// peerPoll is the time between two looks of the peers that keep running.
	peerPoll = 30 * time.Second
	// lossVMs is the number of VMs that are created while answers are lost, and lossShare
	// the share of the lost answers.
	lossVMs, lossShare = 200, 0.05
	// lossPatience is how long a peer may take to create or delete them.
	lossPatience = time.Minute
)

// peer is a program that creates servers of a cloud and keeps them.
type peer interface {
	// title is the name of the peer in the table.
	title() string
	// start starts the peer on a cloud that no other peer uses. n is the number of servers
	// that it creates at most.
	start(ctx context.Context, s *stage, at *mock, n int) error
	// pid is the process whose memory is measured, with its children.
	pid() int
	// create creates n servers, and returns how many are ready at the end of patience or
	// earlier.
	create(ctx context.Context, n int, patience time.Duration) (int, error)
	// look lets the peer look at all servers for a number of times, without a change.
	look(ctx context.Context) (looks int, err error)
	// remove deletes the servers.
	remove(ctx context.Context, n int, patience time.Duration) error
	// writer is the peer's name in the audit log. It is empty if it writes nothing there.
	writer() agent
	stop(ctx context.Context) error
}

// peerRun has the measurements of one peer.
type peerRun struct {
	took   time.Duration
	calls  int
	kinds  map[string]int
	writes int
	// peak is the largest resident memory from the start until all servers are ready, and
	// resting that while the peer looks at them, in bytes.
	peak, resting int64
	// looked is the number of calls of one look at all servers.
	looked float64
}

// peers measures the operator beside what people use in its place.
func peers(ctx context.Context, s *stage) ([]row, error) {
	present, rows := s.options.peers()
	var speed, rest, lost []row
	for i, n := range s.options.populationsOfPeers() {
		runs, err := s.peerRuns(ctx, present, n, i == len(s.options.populationsOfPeers())-1)
		if err != nil {
			return nil, err
		}
		speed = append(speed, speedRows(n, present, runs)...)
		rest = restRows(n, present, runs)
	}
	for _, cloud := range []struct {
		title string
		args  []string
	}{{"names are unique", nil}, {"names are not unique", []string{"--capability=uniqueNames=off"}}} {
		lost = append(lost, heading(fmt.Sprintf("%d VMs, one of %.0f answers to POST lost after its effect, on a cloud whose %s", lossVMs, 1/lossShare, cloud.title)))
		for _, p := range present {
			l, err := s.losing(ctx, p, cloud.args)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.title(), err)
			}
			lost = append(lost, l.row(p))
		}
	}
	return slices.Concat(speed, rest, lost, rows), nil
}

// peerRuns lets all peers create n servers in turns, once in each round. It returns the runs
// of each peer. looks reports whether the last run also measures the peer at rest.
func (s *stage) peerRuns(ctx context.Context, present []peer, n int, looks bool) ([][]peerRun, error) {
	runs := make([][]peerRun, len(present))
	for round := range s.options.rounds {
		for i, p := range present {
			say("round %d of %d: %d VMs by %s", round+1, s.options.rounds, n, p.title())
			r, err := s.peerRun(ctx, p, n, looks && round == s.options.rounds-1)
			if err != nil {
				return nil, fmt.Errorf("%s, %d VMs: %w", p.title(), n, err)
			}
			say("  %s, %d calls, %d writes, %s", inSeconds(r.took), r.calls, r.writes, mebibytes(r.peak))
			runs[i] = append(runs[i], r)
		}
	}
	return runs, nil
}

// withPeer starts a peer on a mock cloud of its own, and stops both after use.
func (s *stage) withPeer(ctx context.Context, p peer, n int, args []string, use func(at *mock) error) error {
	s.starts++
	at, err := startMock(ctx, s.options, s.folder, fmt.Sprintf("mockcloud-peer-%d", s.starts), args...)
	if err != nil {
		return err
	}
	if err := p.start(ctx, s, at, n); err != nil {
		return errors.Join(err, at.stop())
	}
	err = use(at)
	return errors.Join(err, p.stop(ctx), at.stop())
}

func (s *stage) peerRun(ctx context.Context, p peer, n int, looks bool) (peerRun, error) {
	var r peerRun
	err := s.withPeer(ctx, p, n, nil, func(at *mock) error {
		if err := s.measureCreates(ctx, p, n, at, &r); err != nil {
			return err
		}
		if looks {
			if err := measureLooks(ctx, p, at, &r); err != nil {
				return err
			}
		}
		return p.remove(ctx, n, waitTimeout)
	})
	return r, err
}

func (s *stage) measureCreates(ctx context.Context, p peer, n int, at *mock, r *peerRun) error {
	if _, err := s.audit.next(); err != nil {
		return err
	}
	if err := at.forget(ctx); err != nil {
		return err
	}
	memory := watchMemory(p.pid)
	begun := time.Now()
	ready, err := p.create(ctx, n, waitTimeout)
	r.took, r.peak = time.Since(begun), memory.stop()
	if err != nil {
		return err
	}
	if ready < n {
		return fmt.Errorf("%d of %d servers are ready after %s", ready, n, r.took)
	}
	calls, err := at.calls(ctx)
	if err != nil {
		return err
	}
	r.calls, r.kinds = len(calls), kindsOf(calls)
	if p.writer() == "" {
		return nil
	}
	entries, err := s.audit.untilQuiet(ctx, p.writer(), time.Second)
	r.writes = len(writesOf(entries, p.writer()))
	return err
}

func measureLooks(ctx context.Context, p peer, at *mock, r *peerRun) error {
	say("  at rest")
	if err := at.forget(ctx); err != nil {
		return err
	}
	memory := watchMemory(p.pid)
	looks, err := p.look(ctx)
	r.resting = memory.stop()
	if err != nil {
		return err
	}
	calls, err := at.calls(ctx)
	r.looked = float64(len(calls)) / float64(max(1, looks))
	return err
}

func kindsOf(calls []call) map[string]int {
	kinds := map[string]int{}
	for _, c := range calls {
		kinds[c.what()]++
	}
	return kinds
}

// loss is what a peer leaves if answers to creates are lost.
type loss struct {
	// twice is the number of servers beyond the first of their name, unready that of VMs that
	// did not become ready, and left that of servers that still exist when the peer has
	// deleted all that it knows.
	twice, unready, left int
	took                 time.Duration
}

// losing creates and deletes servers while answers are lost. The cloud executes each of
// these creates.
func (s *stage) losing(ctx context.Context, p peer, args []string) (loss, error) {
	say("answers to POST are lost: %s", p.title())
	var l loss
	err := s.withPeer(ctx, p, lossVMs, args, func(at *mock) error {
		err := at.fault(ctx, mockcloud.Fault{
			Match: mockcloud.Match{Method: http.MethodPost, Path: "/servers", Probability: lossShare, Seed: 42}, Answer: mockcloud.After, Reset: true,
		})
		if err != nil {
			return err
		}
		begun := time.Now()
		ready, err := p.create(ctx, lossVMs, lossPatience)
		l.took = time.Since(begun)
		if err != nil {
			return err
		}
		if err := p.remove(ctx, lossVMs, lossPatience); err != nil {
			return err
		}
		ledger, err := at.ledger(ctx)
		l.twice, l.left = strays(ledger)
		l.unready = lossVMs - ready
		return err
	})
	return l, err
}

// strays returns the number of servers that were created beyond the first of their name,
// and that of servers that still exist.
func strays(ledger []mockcloud.LedgerEntry) (twice, left int) {
	names, alive := map[string]bool{}, map[string]bool{}
	for _, e := range ledger {
		switch {
		case e.Op == mockcloud.OpCreate:
			if names[e.Name] {
				twice++
			}
			names[e.Name], alive[e.ServerID] = true, true
		case e.Op == mockcloud.OpGone || e.Op == mockcloud.OpDelete && e.Final:
			delete(alive, e.ServerID)
		}
	}
	return twice, len(alive)
}

// peers returns the peers whose programs are present, the operator first, and rows about
// the others.
func (o options) peers() ([]peer, []row) {
	present := []peer{&operatorPeer{}, &seedPeer{}}
	rows := []row{heading("Not measured")}
	if tofu, missing := newTofuPeer(o.tofu, o.provider); missing == nil {
		present = append(present, tofu)
	} else {
		rows = append(rows, info(tofuTitle, "-", missing.Error()))
	}
	return present, append(rows,
		info("Crossplane with provider-http", "-", "cannot be downloaded as a Go module"),
		info("metacontroller with a hook", "-", "cannot be downloaded as a Go module"))
}

// populationsOfPeers returns the numbers of VMs that the peers create.
func (o options) populationsOfPeers() []int {
	if o.peersMost <= o.vms {
		return []int{o.vms / 10, o.vms}
	}
	return []int{o.vms / 10, o.vms, o.peersMost}
}

// clip returns the last lines of an output.
func clip(output []byte) string {
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	return strings.Join(lines[max(0, len(lines)-12):], "\n")
}

func (s *stage) file(parts ...string) string {
	return filepath.Join(append([]string{s.folder}, parts...)...)
}
