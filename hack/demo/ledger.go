package main

import (
	"fmt"
	"slices"

	"github.com/privatecloud/operator/mockcloud"
)

// ownerLabel is the label by which the operator marks whose a server is.
const ownerLabel = "samplecontroller.k8s.io/uid"

// discrepancies returns in what the ledger differs from that of created servers and
// networks which were made once each and are all gone; nothing when it does not. The
// nodes' servers do not count: no client made them.
func discrepancies(ledger []mockcloud.LedgerEntry, created, networks int) []string {
	var wrong []string
	alive := map[string]string{}
	made, laid := 0, 0
	for _, entry := range ledger {
		switch {
		case entry.By == mockcloud.ByAdmin:
		case entry.Op == mockcloud.OpCreate:
			made++
			alive[entry.ServerID] = fmt.Sprintf("server %s (%s)", entry.ServerID, entry.Name)
			if entry.Labels[ownerLabel] == "" {
				wrong = append(wrong, fmt.Sprintf("server %s (%s) was made without the label %s", entry.ServerID, entry.Name, ownerLabel))
			}
		case entry.Op == mockcloud.OpGone, entry.Op == mockcloud.OpDelete && entry.Final:
			delete(alive, entry.ServerID)
		case entry.Op == mockcloud.OpCreateNetwork:
			laid++
			alive[entry.NetworkID] = fmt.Sprintf("network %s (%s)", entry.NetworkID, entry.Name)
		case entry.Op == mockcloud.OpDeleteNetwork:
			delete(alive, entry.NetworkID)
		}
	}
	for _, what := range alive {
		wrong = append(wrong, fmt.Sprintf("%s is still there", what))
	}
	if made != created {
		wrong = append(wrong, fmt.Sprintf("%d servers were created, expected %d", made, created))
	}
	if laid != networks {
		wrong = append(wrong, fmt.Sprintf("%d networks were created, expected %d", laid, networks))
	}
	for owner, n := range mockcloud.MostAlive(ledger, ownerLabel) {
		if n > 1 {
			wrong = append(wrong, fmt.Sprintf("VM %s had %d servers at a time", owner, n))
		}
	}
	slices.Sort(wrong)
	return wrong
}
