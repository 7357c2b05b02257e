package main

import (
	"fmt"
	"time"
)

func (l loss) row(p peer) row {
	figure := fmt.Sprintf("%d, %d, %d", l.twice, l.unready, l.left)
	detail := "servers made twice, VMs not ready, servers left after the deletion; created in " + inSeconds(l.took)
	if p.writer() != operator {
		return info(p.title(), figure, detail)
	}
	return aim(p.title(), figure, "0, 0, 0", l.twice+l.unready+l.left == 0, detail)
}

func inSeconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// medianTime returns the median time of some runs.
func medianTime(runs []peerRun) time.Duration {
	var times []float64
	for _, r := range runs {
		times = append(times, r.took.Seconds())
	}
	return time.Duration(spread(times).median * float64(time.Second))
}

// speedRows compares the time of the peers to that of the first one, the operator.
func speedRows(n int, present []peer, runs [][]peerRun) []row {
	rows := []row{heading(fmt.Sprintf("%d VMs created at once, until all are ready", n))}
	ours := medianTime(runs[0])
	for i, p := range present {
		last, took := runs[i][len(runs[i])-1], medianTime(runs[i])
		detail := fmt.Sprintf("a VM: calls %s (%s), writes to Kubernetes %s; memory at most %s",
			ratio(last.calls, n), perEach(last.kinds, n), ratio(last.writes, n), mebibytes(last.peak))
		rows = append(rows, info(p.title(), inSeconds(took), detail))
		if i > 0 {
			times := took.Seconds() / ours.Seconds()
			rows = append(rows, aim("  times as long as the operator", fmt.Sprintf("%.1f", times), fmt.Sprintf("≥ %d", aimedSpeed), times >= aimedSpeed, ""))
		}
	}
	return rows
}

// restRows compares the calls of one look at all servers to those of the first peer, the
// operator.
func restRows(n int, present []peer, runs [][]peerRun) []row {
	rows := []row{heading(fmt.Sprintf("%d VMs at rest: cloud calls to look at all of them once", n))}
	var ours float64
	for i, p := range present {
		last := runs[i][len(runs[i])-1]
		detail := fmt.Sprintf("%.0f a minute at a look each %s; memory %s", last.looked*float64(time.Minute/peerPoll), peerPoll, mebibytes(last.resting))
		rows = append(rows, info(p.title(), fmt.Sprintf("%.0f", last.looked), detail))
		if i == 0 {
			ours = last.looked
			continue
		}
		times := last.looked / ours
		rows = append(rows, aim("  times as many as the operator", fmt.Sprintf("%.0f", times), fmt.Sprintf("≥ %d", aimedReads), times >= aimedReads, ""))
	}
	return rows
}
